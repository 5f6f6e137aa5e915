import type { Deps } from '../ctx.ts'
import { isMigrated } from '../db/migrate.ts'
import { type ErrorTable, failPlatform, type Problem } from '../errors.ts'
import type { RequestId } from '../ids.ts'
import type { Operation } from '../operation.ts'
import { newRequestId, problemAnswer, type RawAnswer } from './call.ts'
import { errorsOf } from './openapi.ts'
import type { PublicPage } from './server.ts'

const html = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
}
const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}code,pre{background:#f3f3f3;padding:.1em .3em;border-radius:3px}pre{padding:1em;overflow:auto}h2{margin-top:2.5em;border-bottom:1px solid #ddd}summary{cursor:pointer}small{color:#666}'

/** The table of every refusal in the product: the platform's and all rooms'. */
export function allErrors(operations: readonly Operation[]): ErrorTable {
  return Object.assign({}, failPlatform.table, ...operations.map((operation) => errorsOf(operation))) as ErrorTable
}

/** Pages that need no key: health, the API's description, and one page for each problem type. */
export function publicPages(
  deps: Deps,
  operations: readonly Operation[],
  openApi: Readonly<Record<string, unknown>>,
): PublicPage[] {
  const errors = allErrors(operations)
  const document = JSON.stringify(openApi)
  const reference = referencePage(operations, deps.baseUrl)
  return [
    { path: '/healthz', answer: () => json({ status: 'ok' }) },
    { path: '/readyz', answer: () => readiness(deps) },
    {
      path: '/openapi.json',
      answer: () => ({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: document }),
    },
    { path: '/docs', answer: () => ({ status: 200, headers: html, body: reference }) },
    { path: '/problems/:code', answer: ({ code }) => problemPage(deps, errors, code ?? '') },
  ]
}

/** Prometheus text; on its own port in production, on the main one under `npm start`. */
export function metricsPage(deps: Deps): PublicPage {
  return {
    path: '/metrics',
    answer: async () => ({
      status: 200,
      headers: { 'content-type': deps.metrics.registry.contentType },
      body: await deps.metrics.registry.metrics(),
    }),
  }
}

function json(value: unknown, status = 200): RawAnswer {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body: JSON.stringify(value) }
}

async function readiness(deps: Deps): Promise<RawAnswer> {
  try {
    if (await isMigrated(deps.db)) {
      const details = await deps.readinessDetails?.()
      return json({ status: 'ready', database: 'ok', migrations: 'ok', ...details })
    }
    return json({ status: 'not-ready', database: 'ok', migrations: 'behind' }, 503)
  } catch (error) {
    deps.log.warn({ err: error }, 'not ready: the database does not answer')
    return json({ status: 'not-ready', database: 'unavailable', migrations: 'unknown' }, 503)
  }
}

function problemPage(deps: Deps, errors: ErrorTable, code: string): RawAnswer {
  const entry = Object.hasOwn(errors, code) ? errors[code] : undefined
  const missing: Problem = failPlatform('not-found')
  const requestId: RequestId = newRequestId(deps)
  if (entry === undefined) return problemAnswer({ ...deps, requestId }, missing)
  const body = `<h1>${escapeHtml(entry.title)}</h1><p><code>${escapeHtml(code)}</code> · HTTP ${entry.status}</p><p>${escapeHtml(entry.detail)}</p><p><a href="/docs">API reference</a></p>`
  return { status: 200, headers: html, body: page(entry.title, body) }
}

function referencePage(operations: readonly Operation[], baseUrl: string): string {
  const groups = Map.groupBy(operations, (operation) => operation.id.split('.')[0] ?? '')
  const body = [...groups]
    .map(([group, members]) => `<h2 id="${group}">${group}</h2>${members.map(describe).join('')}`)
    .join('')
  const contents = [...groups.keys()].map((group) => `<a href="#${group}">${group}</a>`).join(' · ')
  const intro = `<h1>Purser API</h1><p>Base address <code>${escapeHtml(baseUrl)}</code>. Every request carries <code>Authorization: Bearer &lt;API key&gt;</code>. The machine-readable description is <a href="/openapi.json">/openapi.json</a>.</p><p>${contents}</p>`
  return page('Purser API', intro + body)
}

function describe(operation: Operation): string {
  const errors = Object.entries(errorsOf(operation))
    .map(([code, entry]) => `<li><a href="/problems/${code}"><code>${code}</code></a> ${entry.status}</li>`)
    .join('')
  const description = operation.description === undefined ? '' : `<p>${escapeHtml(operation.description)}</p>`
  return `<details><summary><code>${operation.method} ${escapeHtml(operation.path)}</code> ${escapeHtml(operation.summary)} <small>${operation.id}</small></summary>${description}<p>Problems:</p><ul>${errors}</ul></details>`
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${style}</style><body>${body}</body></html>`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
