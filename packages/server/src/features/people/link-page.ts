import { hash } from 'node:crypto'
import { escapeHtml } from '../../platform/http/reference/html.ts'

const style = `:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1.5rem}
h1{font-size:1.4rem}strong{overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.2rem;cursor:pointer}`

/**
 * Returns the page that names the address of a one-time link and signs in by its one button, which sends a form to the address of the page. Browsers
 * also apply `form-action` to the redirect behind it, which leads to the dashboard. Without a referrer policy that keeps the own origin, the
 * header `Origin` of the form would be `null`.
 */
export function confirmationPage({ email, dashboardUrl }: { readonly email: string; readonly dashboardUrl: string }) {
  const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sign in to Purser</title><style>${style}</style></head>
<body><main><h1>Sign in to Purser</h1>
<p>This link signs you in as <strong>${escapeHtml(email)}</strong>. If that is not your address, close this page: what you enter would belong to somebody else.</p>
<form method="post"><button>Sign in</button></form></main></body>
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
