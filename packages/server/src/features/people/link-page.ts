import { hash } from 'node:crypto'
import { mark } from '../../platform/http/guides/layout.ts'
import { escapeHtml } from '../../platform/http/reference/html.ts'

/** The colors of the dashboard's sign-in page. */
const style = `:root{color-scheme:light dark;--page:#f9f9fb;--paper:#fff;--line:#e2e4e9;--ink:#181b22;--ink-2:#4a4e58;--accent:#5145cd;--accent-hover:#4338b0}
@media (prefers-color-scheme:dark){:root{--page:#101217;--paper:#17191f;--line:#2b2f37;--ink:#eff0f2;--ink-2:#b9bcc3;--accent:#5d54d8;--accent-hover:#6a62e2}}
*{box-sizing:border-box;margin:0}body{display:grid;place-items:center;min-height:100dvh;padding:1rem;font:14px/20px system-ui,sans-serif;color:var(--ink);background:var(--page)}
main{width:100%;max-width:22.5rem}header{display:flex;align-items:center;gap:.75rem;margin-bottom:1.5rem}header svg{width:36px;height:36px}h1{font-size:20px;line-height:28px;font-weight:600;letter-spacing:-.01em}
form{display:grid;gap:1rem;padding:1.25rem;border:1px solid var(--line);border-radius:10px;background:var(--paper)}strong{display:block;font-weight:600;overflow-wrap:anywhere}.note{color:var(--ink-2)}
button{font:inherit;font-weight:500;height:2.25rem;border:0;border-radius:6px;color:#fff;background:var(--accent);cursor:pointer}button:hover{background:var(--accent-hover)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}`

/**
 * Returns the page that names the address of a one-time link and signs in by its one button, which sends a form to the address of the page. Browsers
 * also apply `form-action` to the redirect behind it, which leads to the dashboard. Without a referrer policy that keeps the own origin, the
 * header `Origin` of the form would be `null`.
 */
export function confirmationPage({ email, dashboardUrl }: { readonly email: string; readonly dashboardUrl: string }) {
  const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sign in to Purser</title><style>${style}</style></head>
<body><main><header>${mark}<h1>Sign in to Purser</h1></header>
<form method="post"><p>This link signs you in as <strong>${escapeHtml(email)}</strong></p>
<button>Sign in</button>
<p class="note">If that is not your address, close this page: what you enter would belong to somebody else.</p></form></main></body>
</html>
`
  const sources = `style-src 'sha256-${hash('sha256', style, 'base64')}'; form-action 'self' ${new URL(dashboardUrl).origin}`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; ${sources}; base-uri 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store',
  }
  return new Response(body, { headers })
}
