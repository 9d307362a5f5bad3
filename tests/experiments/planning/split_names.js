return [...document.querySelectorAll('table.loads tbody th, table .name')]
  .filter(name => name.firstChild && (() => {
    const text = document.createRange();
    text.selectNodeContents(name.firstChild);
    return text.getClientRects().length > 1;
  })()).length;
