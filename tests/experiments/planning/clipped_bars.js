const region = document.querySelector('table.loads').closest('.scroll').getBoundingClientRect();
return [...document.querySelectorAll('table.loads .bars i')]
  .filter(bar => bar.getBoundingClientRect().right > region.right + 1).length;
