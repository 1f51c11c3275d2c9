// What the page shows, from the file itself. The clock of the page stands still at the moment of the file.
export const data = JSON.parse(document.getElementById("data").textContent);

const at = Date.parse(data.at);
Date.now = () => at;
