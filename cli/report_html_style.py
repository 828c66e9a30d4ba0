"""The one stylesheet and the one script of a report; their hashes are in its security policy.

Colours are Okabe and Ito's eight, cividis for stages and one blue for heat: all are told apart with
every common colour blindness. The script only adds to the page: nothing is hidden without it.
"""

# ruff: noqa: E501 - rules of one line each
from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

_OKABE_ITO = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#8c8c8c",
)
_CIVIDIS = (
    "#00224e",
    "#123570",
    "#3b496c",
    "#575d6d",
    "#707173",
    "#8a8678",
    "#a59c74",
    "#c3b369",
    "#e1cc55",
    "#fee838",
)
_HEAT = ("#d6e6f4", "#abcfe5", "#6aaed6", "#3787c0", "#1c64a5", "#0b4083", "#08244f")
_ON_DARK = {0}  # white words on it; black ones on the others: at least 4.5 to 1
_LIGHT_HEAT = 4  # black words on so many of the heat's colours, white ones on the rest
_LETTERS = "abcdefghij"  # of families that can be lit up

_ROOT = """
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#595959;--page:#fff;--panel:#f5f6f8;--line:#c9cdd3;--inside:#dfe2e6;--free:#fff;--link:#0b57a4;--warn:#fff3cd;--warnline:#b38600;--dead:#b34700}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--soft:#b3b3b3;--page:#15171a;--panel:#1e2125;--line:#474c54;--inside:#33373d;--free:#15171a;--link:#8ec5ff;--warn:#3a3000;--warnline:#e0b000;--dead:#ff9a5c}}
"""

_PICTURES = """
svg text{fill:var(--ink)}
svg .small{font-size:10.5px;fill:var(--soft)}
svg .strong{font-weight:600}
svg .halo{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}
svg.scale{width:400px;max-width:100%}
.seats:has(.lit-none:not(:checked)) .scale{display:none}
.axis{stroke:var(--soft);fill:none}
.mark{stroke:var(--ink);stroke-dasharray:4 3;fill:none}
.front{stroke:var(--soft);fill:none;stroke-width:1.5}
.stripes{stroke:var(--page);stroke-width:2;fill:none;pointer-events:none}
.whisker{stroke:var(--soft);stroke-width:2;fill:none}
.edge{stroke:var(--soft);stroke-width:.7}
.open{fill:var(--page);stroke:var(--soft);stroke-width:2}
.gap{fill:var(--page)}
.critical{fill:none;stroke:var(--ink);stroke-width:1.6}
.room{fill:var(--panel);stroke:var(--line)}.room.edge{stroke:var(--soft)}
.leaving{fill:#d55e00}
.free{fill:var(--free);stroke:var(--line);stroke-dasharray:1 1}
.part{fill:var(--panel);stroke:var(--soft)}
.wire{stroke:var(--soft);fill:none}
.supernode{fill:#cfe3f3;stroke:#0072b2}.leaf{fill:#d2ece3;stroke:#009e73}.spine{fill:#fae7c2;stroke:#b87a00}.core{fill:#f3ddea;stroke:#a8568a}.dead{fill:var(--dead)}.gone{fill:none;stroke:var(--dead);stroke-width:1.5;stroke-dasharray:4 3}
.hatch{fill:var(--inside)}
.edge.hatch{stroke:var(--soft);stroke-dasharray:3 2}
svg .on-hatch{fill:var(--ink)}
.k{stroke:var(--line);stroke-width:.5}
.k.pick{stroke:var(--ink);stroke-width:3;paint-order:stroke}
.cells.picked .k:not(.pick){opacity:.25}
@media screen and (prefers-color-scheme:dark){.supernode{fill:#0c3a56}.leaf{fill:#0a4434}.spine{fill:#4d3803}.core{fill:#4a2940}.h1{fill:#122c46}.h2{fill:#12426b}.h3{fill:#1c64a5}.h4{fill:#3787c0}.h5{fill:#6aaed6}.h6{fill:#abcfe5}.h7{fill:#eaf4fc}svg :is(.on-h1,.on-h2,.on-h3){fill:#fff}svg :is(.on-h5,.on-h6,.on-h7){fill:#000}}
"""

_CARDS = """
{0} thead{{display:none}}
{0},{0} caption,{0} tbody,{0} tr{{display:block}}
{0} tr{{border:1px solid var(--line);border-radius:6px;padding:4px 10px;margin:8px 0}}
{0} tr[hidden],{0} td.none{{display:none}}
{0} td{{display:grid;grid-template-columns:minmax(6.5em,38%) 1fr;gap:10px;border:0;padding:2px 0;text-align:left;white-space:normal}}
{0} td::before{{content:attr(data-h);color:var(--soft)}}
{0} td:first-child{{font-weight:600}}
"""
_NARROW_CARDS = (
    f"@media screen and (max-width:700px){{{_CARDS.format('.cards')}}}\n"
    f"@media screen and (max-width:840px){{{_CARDS.format('.broad')}}}\n"
)

_PAGE = """
*{box-sizing:border-box}
body{margin:0;overflow-wrap:break-word;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main,header,footer,nav{max-width:1020px;margin:0 auto;padding:0 24px}
header{padding-top:28px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:20px;margin:36px 0 8px;padding-top:10px;border-top:2px solid var(--line)}
h3{font-size:16px;margin:20px 0 6px}
h4{font-size:15px;margin:14px 0 -8px}
p{margin:6px 0;max-width:76ch}
a{color:var(--link)}
nav b{font-weight:600}
nav ul{display:flex;flex-wrap:wrap;gap:2px 18px;padding:0;margin:6px 0;list-style:none;font-size:14px}
nav li,.figures dt,.legend li{overflow-wrap:anywhere;min-width:0}
.figures{overflow-wrap:anywhere}
.skip{position:absolute;left:-999px}
.skip:focus{left:8px;top:8px;background:var(--page);padding:6px 10px}
.lead{font-size:17px}
.figures{display:grid;grid-template-columns:repeat(4,1fr);gap:10px;margin:18px 0 6px}
.figures:has(>:nth-child(5)){grid-template-columns:repeat(3,1fr)}
.figures:has(>:nth-child(5):last-child){grid-template-columns:repeat(5,1fr)}
.figures div{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:9px 13px 10px}
.figures dt,.figures dd{margin:0;font-size:13px;line-height:1.35;color:var(--soft)}
.figures .value{font-size:23px;font-weight:600;line-height:1.4;color:var(--ink);font-variant-numeric:tabular-nums;white-space:nowrap}
.soft{color:var(--soft);font-size:13.5px}
.warn{background:var(--warn);border-left:4px solid var(--warnline);padding:8px 12px;max-width:none}
svg:not(.domain){width:100%}
svg{display:block;max-width:100%;height:auto;margin:8px 0;font:12.5px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.cells{display:flex;flex-wrap:wrap;margin:8px 0}
.cells svg{flex:none;margin:0}
.cells .row{flex-basis:100%}
@media screen and (max-width:1020px){.cells .row{display:none}}
.scroll,.frame{overflow-x:auto}
table{border-collapse:collapse;margin:10px 0;font-size:14px;min-width:50%}
caption{text-align:left;font-weight:600;padding:4px 0}
th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
td.n{white-space:nowrap}
th{vertical-align:bottom}
th[tabindex]{cursor:pointer}
th[aria-sort=ascending]::after{content:" \\2191"}
th[aria-sort=descending]::after{content:" \\2193"}
td.wrap{overflow-wrap:anywhere}
p code{white-space:nowrap}
code{font:13px ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
pre{background:var(--panel);padding:10px 12px;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:13px ui-monospace,"DejaVu Sans Mono",monospace}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;list-style:none;padding:0;margin:4px 0 12px;font-size:13.5px}
.legend .key{display:inline-block;width:12px;height:12px;margin:0 4px 0 0;vertical-align:-1px}
.seats input[type=radio]{margin:0 4px 0 0;vertical-align:-2px}
.seats>label{display:inline-block;max-width:100%;margin:2px 18px 2px 0}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.k[data-r]{cursor:pointer}
.filter{display:block;font-size:13.5px;margin-top:10px}
.ask{display:none}
.scripted .ask{display:block}
.ask input{width:7em}
footer{padding-top:16px;padding-bottom:40px;color:var(--soft);font-size:13px}
.narrow{display:none}
@media screen and (max-width:900px){
.figures:has(>:nth-child(5):last-child){grid-template-columns:repeat(3,1fr)}
table{font-size:12.5px}
th,td{padding-right:6px}
}
@media screen and (min-width:701px){td[data-h=Layout]{min-width:7.5em}}
@media screen and (max-width:700px){
main,header,footer,nav{padding-left:14px;padding-right:14px}
h1{font-size:22px;overflow-wrap:anywhere}
.wide{display:none}.narrow{display:block}
.frame>svg{min-width:700px}.narrow>.frame>svg{min-width:0}
.frame:not(.narrow>.frame){border-right:1px dashed var(--line)}
.frame:not(.narrow>.frame)::before{content:"wider than the screen: swipe it sideways \\2192";position:sticky;left:0;display:block;width:max-content;font-size:12px;color:var(--soft)}
.figures,.figures:has(>:nth-child(5)),.figures:has(>:nth-child(5):last-child){grid-template-columns:1fr 1fr;gap:8px}
.figures .value{font-size:19px}
table{width:100%}
td{overflow-wrap:anywhere}
tr>:first-child{min-width:8.5em}
}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@page{size:A4;margin:14mm}
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--page:#fff;--panel:#f5f6f8;--line:#b5b9bf;--inside:#dfe2e6;--free:#fff;--link:#000;--warn:#fff;--warnline:#000;--dead:#b34700}
body{font-size:10.5pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
main,header,footer{max-width:none;padding:0}
nav,.filter,.ask,.scripted .ask,.seats input,.seats label{display:none!important}
h2,h3,caption,p:has(+.frame),p:has(+.wide),p:has(+.seats){break-after:avoid}
.figures{break-inside:avoid}
.figures .value{font-size:14pt}
.figures dt,.figures dd{font-size:8.5pt}
h2{margin-top:18pt}
svg,tr,p,.legend{break-inside:avoid}
.seats>label:has(input:checked){display:block!important;break-after:avoid}
thead{display:table-header-group;break-after:avoid}
tr[hidden]{display:table-row}
table{font-size:9pt}
th,td{padding:3px 8px 3px 0}
td[data-h=Layout]{min-width:8.5em}
.scroll,.frame{overflow:visible}
.cells{zoom:.7}
.narrow{display:none!important}.wide{display:block!important}}
"""


def _rules() -> str:
    """Return the colours of the pictures, and of each family when its light is on."""
    rules = [
        f".c{i}{{fill:{c}}}svg .on-c{i}{{fill:{'#fff' if i in _ON_DARK else '#000'}}}"
        for i, c in enumerate(_OKABE_ITO)
    ]
    rules += [f".s{i}{{fill:{c}}}" for i, c in enumerate(_CIVIDIS)]
    rules += [
        f".h{i}{{fill:{c}}}svg .on-h{i}{{fill:{'#000' if i <= _LIGHT_HEAT else '#fff'}}}"
        for i, c in enumerate(_HEAT, start=1)
    ]
    for letter in _LETTERS:
        lit = f".seats:has(.lit-{letter}:checked) .map ."
        rules.append(f"{lit}{letter}i{{fill:var(--inside)}}")
        rules += [f"{lit}{letter}{i}{{fill:{c}}}" for i, c in enumerate(_OKABE_ITO[:-1])]
    return "\n".join(rules)


STYLE = _rules() + _ROOT + _PAGE + _NARROW_CARDS + _PICTURES
PICTURE_STYLE = _rules() + _ROOT + _PICTURES  # for a picture that is a file of its own

SCRIPT = """
'use strict';
document.documentElement.classList.add('scripted');
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = isNaN(x) || isNaN(y) ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    };
    head.addEventListener('click', sort);
    head.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(); }
    });
  });
}
const scrollers = document.querySelectorAll('.frame,.scroll');
const reach = () => {
  for (const one of scrollers) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute('tabindex');
  }
};
addEventListener('resize', reach);
reach();
for (const table of document.querySelectorAll('table.sortable')) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 12) continue;
  const label = document.createElement('label');
  const input = document.createElement('input');
  const said = document.createElement('span');
  label.className = 'filter';
  input.type = 'search';
  said.setAttribute('role', 'status');
  label.append('Show only rows with ', input, ' ', said);
  table.parentNode.before(label);
  input.addEventListener('input', () => {
    const wanted = input.value.toLowerCase();
    let left = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) left += 1;
    }
    said.textContent = wanted ? left + ' of ' + rows.length : '';
  });
}
for (const seats of document.querySelectorAll('.seats')) {
  const cells = seats.querySelector('.cells');
  if (!cells.querySelector('[data-r]') || !seats.querySelector('.ask')) continue;
  const said = seats.querySelector('.said');
  const asked = seats.querySelector('.ask input');
  const sizes = cells.dataset.axes.split(',').map(Number);
  const digits = rank => sizes.map(size => { const digit = rank % size; rank = (rank - digit) / size; return digit; });
  let picked = null;
  const show = () => {
    for (const cell of cells.querySelectorAll('.pick')) cell.classList.remove('pick');
    cells.classList.toggle('picked', picked !== null);
    if (picked === null) { said.textContent = ''; return; }
    const chosen = seats.querySelector('input[type=radio]:checked');
    const along = (chosen.dataset.along ?? '').split(',').filter(text => text !== '').map(Number);
    const mine = digits(picked);
    const names = [];
    for (const cell of cells.querySelectorAll('[data-r]')) {
      const other = digits(Number(cell.dataset.r));
      if (other.every((digit, axis) => along.includes(axis) || digit === mine[axis])) {
        cell.classList.add('pick');
        names.push(Number(cell.dataset.r));
      }
    }
    names.sort((a, b) => a - b);
    const list = names.length > 24 ? names.slice(0, 24).join(', ') + ' and ' + (names.length - 24) + ' more' : names.join(', ');
    said.textContent = along.length ? 'Rank ' + picked + ' is in the group of ranks ' + list + '.' : 'Rank ' + picked + '. Light up a family to see its group.';
  };
  cells.addEventListener('click', event => {
    const cell = event.target.closest('[data-r]');
    if (!cell) return;
    const rank = Number(cell.dataset.r);
    picked = picked === rank ? null : rank;
    asked.value = picked === null ? '' : picked;
    show();
  });
  asked.addEventListener('input', () => {
    picked = asked.value !== '' && cells.querySelector('[data-r="' + Number(asked.value) + '"]') ? Number(asked.value) : null;
    show();
  });
  for (const radio of seats.querySelectorAll('input[type=radio]')) radio.addEventListener('change', show);
}
"""


def policy() -> str:
    """Return the content-security policy: this style, this script, and nothing from anywhere."""
    return (
        f"default-src 'none'; style-src '{_hash(STYLE)}'; script-src '{_hash(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
