import { hash } from 'node:crypto'
import { escapeHtml } from '../reference/html.ts'

const style = `
:root{color-scheme:light dark;--ink:#171a21;--ink-2:#4a505e;--ink-3:#636978;--paper:#fff;--soft:#f7f7fa;--line:#e3e4ea;--accent:#4b3fd6;--accent-soft:#f0effc;
--kw:#a3186c;--str:#1a6b3c;--num:#9a4a00;--fn:#2f5bd0;--com:#646b7a}
@media (prefers-color-scheme:dark){:root{--ink:#eceef3;--ink-2:#b9becb;--ink-3:#969cab;--paper:#0f1116;--soft:#171a21;--line:#2a2e39;--accent:#a9a3ff;--accent-soft:#221f45;
--kw:#ff8fc7;--str:#8bdca6;--num:#ffb86b;--fn:#93b4ff;--com:#8b92a3}}
*{box-sizing:border-box}
html{scroll-padding-top:5rem}
body{font:16px/1.65 system-ui,-apple-system,"Segoe UI",sans-serif;margin:0;color:var(--ink);background:var(--paper);-webkit-text-size-adjust:100%}
a{color:var(--accent);text-underline-offset:.18em;text-decoration-thickness:1px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:1rem;z-index:3;background:var(--paper);padding:.4em .8em}
.top{position:sticky;top:0;z-index:2;display:flex;align-items:center;gap:1.25rem;height:3.75rem;padding:0 1.5rem;background:var(--paper);border-bottom:1px solid var(--line)}
.top a{color:var(--ink-2);text-decoration:none;font-size:.92rem;white-space:nowrap}.top a:hover,.top a[aria-current]{color:var(--ink)}
.top .brand{display:flex;align-items:center;gap:.55rem;font-weight:650;font-size:1.05rem;color:var(--ink);letter-spacing:-.01em}
.brand svg{display:block}.brand small{font-weight:400}
.top form{flex:1;max-width:26rem;margin:0 auto 0 1rem}
input[type=search]{width:100%;font:inherit;font-size:.92rem;padding:.42rem .8rem;color:var(--ink);background:var(--soft);border:1px solid var(--line);border-radius:8px}
input::placeholder{color:var(--ink-3);opacity:1}
code,pre{font:.875em/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{background:var(--soft);border:1px solid var(--line);border-radius:5px;padding:.1em .35em;overflow-wrap:anywhere}
pre{background:var(--soft);border:1px solid var(--line);border-radius:10px;padding:.95rem 1.1rem;overflow:auto;font-size:.85rem;margin:1.1em 0}
pre code{padding:0;border:0;background:none;font-size:1em;overflow-wrap:normal}
.code{position:relative}.code pre{padding-right:4.5rem}
.copy{position:absolute;top:.6rem;right:.6rem;font:inherit;font-size:.75rem;line-height:1.4;padding:.15rem .55rem;color:var(--ink-2);background:var(--paper);border:1px solid var(--line);border-radius:6px;cursor:pointer}
.copy:hover{color:var(--ink);border-color:var(--ink-3)}
.hljs-keyword,.hljs-built_in,.hljs-literal,.hljs-meta{color:var(--kw)}.hljs-string,.hljs-regexp{color:var(--str)}.hljs-number,.hljs-variable,.hljs-subst{color:var(--num)}
.hljs-title,.hljs-attr,.hljs-property{color:var(--fn)}.hljs-comment{color:var(--com)}.hljs-string .hljs-subst{color:var(--ink)}
h1{font-size:2.1rem;line-height:1.2;letter-spacing:-.022em;margin:.2em 0 .5em;font-weight:680}
h2{font-size:1.4rem;line-height:1.3;letter-spacing:-.012em;margin:2.4em 0 .7em;font-weight:640}
h3{font-size:1.1rem;line-height:1.4;margin:1.9em 0 .4em;font-weight:640}h4{font-size:1rem;margin:1.4em 0 .3em}
p,ul,ol{margin:0 0 1em}li{margin:.2em 0}
.scrolls{overflow-x:auto;margin:1.2em 0;border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;vertical-align:top;padding:.55em .9em;border-bottom:1px solid var(--line)}tr:last-child>*{border-bottom:0}
thead th{background:var(--soft);font-weight:600;color:var(--ink-2);white-space:nowrap}th[scope=row]{font-weight:normal;white-space:nowrap}
small{color:var(--ink-3)}
.anchor{visibility:hidden;text-decoration:none;color:var(--ink-3)}:is(h2,h3,h4):hover .anchor,.anchor:focus{visibility:visible}
.plain{max-width:64rem;margin:0 auto;padding:2rem 1.5rem 5rem}.plain nav ul{columns:18rem;padding-left:1.2em}
section section{margin-top:2.5em;border-top:1px solid var(--line)}
.guide{max-width:90rem;margin:0 auto;padding:0 1.5rem;display:grid;grid-template-columns:minmax(0,1fr);gap:0 3rem}
.guide main{padding:2rem 0 4rem;min-width:0}.guide td:first-child{min-width:9rem}
.kind{color:var(--accent);font-size:.85rem;font-weight:600;margin:0}
.lead{font-size:1.15rem;color:var(--ink-2);max-width:44rem}
.side{font-size:.92rem;padding-bottom:3rem}
.side h2{font-size:.78rem;letter-spacing:.02em;color:var(--ink-3);margin:1.6em 0 .3em;font-weight:600}
.side ul,.onpage ul{list-style:none;margin:0;padding:0}.side li{margin:0}
.side li a{display:block;padding:.28rem .7rem;margin-left:-.7rem;border-radius:7px;color:var(--ink-2);text-decoration:none}
.side li a:hover{color:var(--ink);background:var(--soft)}.side li a[aria-current]{color:var(--accent);background:var(--accent-soft);font-weight:600}
.onpage{display:none;font-size:.86rem}.onpage h2{font-size:.78rem;color:var(--ink-3);margin:0 0 .5em;font-weight:600}
.onpage a{display:block;padding:.2rem 0;color:var(--ink-2);text-decoration:none;line-height:1.4}.onpage a:hover{color:var(--accent)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(16.5rem,100%),1fr));gap:.9rem;margin:1rem 0 2rem;padding:0;list-style:none}
.cards li{margin:0;display:flex}.cards a{flex:1;display:block;padding:1rem 1.1rem;border:1px solid var(--line);border-radius:12px;text-decoration:none;color:var(--ink-2);font-size:.9rem;line-height:1.5}
.cards a:hover{border-color:var(--accent);background:var(--soft)}.cards strong{display:block;color:var(--ink);font-size:.98rem;font-weight:620;margin-bottom:.15rem}
.cards code{border:0;padding:0;background:none}
.turn{display:grid;grid-template-columns:1fr 1fr;gap:1rem;margin-top:3.5rem}.turn a{border:1px solid var(--line);border-radius:12px;padding:.8rem 1.1rem;text-decoration:none;font-weight:600}
.turn a:hover{border-color:var(--accent)}.turn small{display:block;font-weight:400}.turn .next{text-align:right;grid-column:2}
.end{margin-top:2rem;padding-top:1rem;border-top:1px solid var(--line)}
.contents{margin:1.2em 0;padding:.6em 1em;border:1px solid var(--line);border-radius:10px}.contents summary{cursor:pointer}.contents ul{margin:.5em 0 0}
.found{list-style:none;padding:0}.found li{padding:1rem 0;border-bottom:1px solid var(--line)}.found a{font-weight:600;text-decoration:none}.found p{margin:.25rem 0 0;color:var(--ink-2);font-size:.93rem}
mark{background:var(--accent-soft);color:inherit;border-radius:3px}
@media (min-width:60rem){.guide{grid-template-columns:15.5rem minmax(0,1fr)}.guide main{max-width:48rem}
.side{grid-column:1;grid-row:1;position:sticky;top:3.75rem;align-self:start;max-height:calc(100vh - 3.75rem);overflow-y:auto;padding:1rem .5rem 3rem .7rem;margin-left:-.7rem}
.guide main{grid-column:2}}
@media (min-width:80rem){.guide{grid-template-columns:15.5rem minmax(0,48rem) minmax(0,1fr)}.onpage{display:block;grid-column:3;grid-row:1;position:sticky;top:3.75rem;align-self:start;max-height:calc(100vh - 3.75rem);overflow-y:auto;padding:2.6rem 0 2rem}.contents{display:none}
.guide.wide{grid-template-columns:15.5rem minmax(0,1fr)}.guide.wide main{max-width:60rem}}
@media (max-width:48rem){.top{gap:.9rem;padding:0 1rem}.top form{margin:0 0 0 auto}.top .far{display:none}.guide,.plain{padding-left:1rem;padding-right:1rem}h1{font-size:1.75rem}.code pre{padding-right:1.1rem}.copy{display:none}}
`

/** Copies code, and opens the search with the key `/`. A page works without it. */
const script = `
addEventListener('keydown',(e)=>{if(e.key==='/'&&!/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName??'')){e.preventDefault();document.querySelector('input[type=search]')?.focus()}})
for(const box of document.querySelectorAll('.code')){const b=document.createElement('button');b.type='button';b.className='copy';b.textContent='Copy';b.setAttribute('aria-live','polite')
b.addEventListener('click',async()=>{try{await navigator.clipboard.writeText(box.querySelector('code').textContent);b.textContent='Copied'}catch{b.textContent='Not allowed'}setTimeout(()=>{b.textContent='Copy'},1500)});box.prepend(b)}
`

const digest = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`

/** A page without external resources: its one style and its one script are allowed by their digests. */
export const htmlHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src ${digest(style)}; script-src ${digest(script)}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
}

/** The mark of the product, in the colors `--accent` and `--paper` of its page. */
export const mark = `<svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true"><rect width="22" height="22" rx="6" fill="var(--accent)"/><path d="M7 16V6h5a3.4 3.4 0 0 1 0 6.8H7" fill="none" stroke="var(--paper)" stroke-width="2.2"/></svg>`

export type Section = 'guides' | 'reference'

/** A whole document around a body of HTML. `query` is the text of the search field. */
export function page(
  title: string,
  body: string,
  { place, query = '' }: { readonly place: Section; readonly query?: string },
): string {
  const here = (one: Section): string => (one === place ? ' aria-current="true"' : '')
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><a class="skip" href="#content">Skip to the content</a>
<header class="top"><a class="brand" href="/docs">${mark}Purser</a>
<form role="search" action="/docs/search"><input type="search" name="q" value="${escapeHtml(query)}" placeholder="Search" aria-label="Search the guides" maxlength="100"></form>
<a href="/docs"${here('guides')}>Guides</a><a href="/docs/reference"${here('reference')}>API<span class="far"> reference</span></a><a class="far" href="/dashboard">Dashboard</a></header>
${body}<script>${script}</script></body>
</html>
`
}
