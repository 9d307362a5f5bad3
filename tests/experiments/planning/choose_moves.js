const slider = document.querySelector('.choice input');
slider.value = arguments[0];
slider.dispatchEvent(new Event('input'));
return {
  text: document.querySelector('.choice output').textContent,
  loads: [...document.querySelectorAll('table.loads tbody tr')]
    .map(row => Number(row.cells[2].textContent)),
  later: document.querySelectorAll('table.moves tr.later').length,
};
