import { withSamples } from './samples.ts'
import { type ApiDocument, anchorsOf, slugOfOperation } from './document.ts'

interface Scalar {
  readonly createApiReference: (mountPoint: string, configuration: Readonly<Record<string, unknown>>) => unknown
}

/**
 * Sends what the reader tries without the cookies of the browser: the answer is that of the key which the reader typed, and never that of the
 * person who is signed in to the dashboard of the same origin.
 */
const fetchWithoutCookies: typeof fetch = (input, init) => fetch(input, { ...init, credentials: 'omit' })

/** Samples that Scalar writes by itself; the others of its forty are hidden. */
const shown: Readonly<Record<string, readonly string[]>> = { shell: ['curl'], js: ['fetch'], python: ['requests'] }

async function start(): Promise<void> {
  const answer = await fetchWithoutCookies('/openapi.json')
  if (!answer.ok) throw new Error(`/openapi.json answered ${answer.status}`)
  const document: ApiDocument = await answer.json()
  const anchor = anchorsOf(document).get(location.hash.slice(1))
  if (anchor !== undefined) history.replaceState(null, '', `#${anchor}`)
  const { Scalar } = window as typeof window & { readonly Scalar: Scalar }
  window.document.querySelector('#loading')?.remove()
  Scalar.createApiReference('#reference', {
    ...{ content: withSamples({ ...document, servers: [{ url: location.origin }] }), customFetch: fetchWithoutCookies },
    ...{ theme: 'none', withDefaultFonts: false, favicon: 'data:,', title: 'API reference · Purser' },
    // Nothing is sent to or opened at another host, and no key is written to the browser's storage.
    ...{ telemetry: false, persistAuth: false, hideClientButton: true, showDeveloperTools: 'never' },
    ...{ agent: { disabled: true, hideAddApi: true }, mcp: { disabled: true }, documentDownloadType: 'none' },
    authentication: { preferredSecurityScheme: 'apiKey' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    hiddenClients: hiddenClients(),
    ...{ hideModels: true, showOperationId: true, operationTitleSource: 'summary', defaultOpenFirstTag: false },
    generateOperationSlug: slugOfOperation,
  })
}

const targets = [
  ...['c', 'clojure', 'csharp', 'dart', 'fsharp', 'go', 'http', 'java', 'js', 'julia', 'kotlin', 'node', 'objc'],
  ...['ocaml', 'php', 'powershell', 'python', 'r', 'ruby', 'rust', 'shell', 'swift'],
]

const clients: Readonly<Record<string, readonly string[]>> = {
  js: ['axios', 'jquery', 'ofetch', 'xhr'],
  python: ['python3', 'aiohttp', 'httpx_sync', 'httpx_async'],
  shell: ['httpie', 'wget'],
}

function hiddenClients(): Readonly<Record<string, true | readonly string[]>> {
  return Object.fromEntries(targets.map((target) => [target, shown[target] === undefined ? true : (clients[target] ?? [])]))
}

start().catch((error: unknown) => {
  console.error(error)
  const note = window.document.querySelector('#loading')
  if (note !== null) note.innerHTML = 'The reference did not load. It is also <a href="/docs/reference/plain">without scripts</a>.'
})
