// Long names in tables may be cut after _ / . and - only: a phone has no room for all of them.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("table.docutils td code .pre")) {
    const pieces = code.textContent.split(/(?<=[_/.-])(?=\w)/);
    code.replaceChildren(...pieces.flatMap((piece, i) => (i ? [document.createElement("wbr"), piece] : [piece])));
  }
});
