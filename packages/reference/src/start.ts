import { type ApiDocument, anchorsOf, slugOfOperation } from './document.ts'
import { forReaders } from './for-readers.ts'

interface Scalar {
  readonly createApiReference: (mountPoint: string, configuration: Readonly<Record<string, unknown>>) => unknown
}

/**
 * Sends what the reader tries without the cookies of the browser: the response is that of the key which the reader typed, and never that of the
 * person who is signed in to the dashboard of the same origin.
 */
const fetchWithoutCookies: typeof fetch = (input, init) => fetch(input, { ...init, credentials: 'omit' })

async function start(): Promise<void> {
  const response = await fetchWithoutCookies('/openapi.json')
  if (!response.ok) throw new Error(`/openapi.json answered ${response.status}`)
  const document: ApiDocument = await response.json()
  const named = location.hash.slice(1)
  if (onlyWithoutScripts.test(named)) return location.replace(`/docs/reference/plain#${named}`)
  const anchor = anchorsOf(document).get(named)
  if (anchor !== undefined) history.replaceState(null, '', `#${anchor}`)
  const { Scalar } = window as typeof window & { readonly Scalar: Scalar }
  Scalar.createApiReference('#reference', {
    ...{ content: forReaders(document, location.origin), customFetch: fetchWithoutCookies },
    ...{ theme: 'none', withDefaultFonts: false, favicon: 'data:,', title: 'API reference · Purser' },
    // Nothing is sent to or opened at another host, and no key is written to the browser's storage.
    ...{ telemetry: false, persistAuth: false, hideClientButton: true, showDeveloperTools: 'never' },
    ...{ agent: { disabled: true, hideAddApi: true }, mcp: { disabled: true }, documentDownloadType: 'none' },
    authentication: { preferredSecurityScheme: 'apiKey' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    featuredClients: ['shell/curl', 'js/fetch', 'python/requests'],
    hiddenClients: hiddenClients(),
    ...{ hideModels: true, showOperationId: true, operationTitleSource: 'summary', defaultOpenFirstTag: false },
    generateOperationSlug: slugOfOperation,
  })
  window.document.querySelector('#loading')?.remove()
}

/** Anchors of this address when it was the page without scripts. Those of operations and tags have their own on this page. */
const onlyWithoutScripts = /^(?:all-errors|event-types|error-.+|event-.+)$/

/** Scalar knows forty ways to send a request. Three stay: curl, `fetch` and Python's requests. */
function hiddenClients(): Readonly<Record<string, true | readonly string[]>> {
  const whole = ['c', 'clojure', 'csharp', 'dart', 'fsharp', 'go', 'http', 'java', 'julia', 'kotlin', 'node', 'objc']
  const others = ['ocaml', 'php', 'powershell', 'r', 'ruby', 'rust', 'swift']
  return {
    ...Object.fromEntries([...whole, ...others].map((target) => [target, true])),
    js: ['axios', 'jquery', 'ofetch', 'xhr'],
    python: ['python3', 'aiohttp', 'httpx_sync', 'httpx_async'],
    shell: ['httpie', 'wget'],
  }
}

start().catch((error: unknown) => {
  console.error(error)
  const note = window.document.querySelector('#loading')
  if (note !== null)
    note.innerHTML = 'The reference did not load. It is also <a href="/docs/reference/plain">without scripts</a>.'
})
