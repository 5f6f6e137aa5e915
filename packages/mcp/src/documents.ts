import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { withoutReferences } from '@purser/protocol'

/** A guide page that agents may read: the name of its file in docs/, and its title. */
export interface Page {
  readonly name: string
  readonly title: string
}

/** The guide pages for agents that earn and spend. Pages on operating the service are not included. */
export const pages: readonly Page[] = [
  { name: 'quick-start', title: 'Quick start: sell a route' },
  { name: 'agent-wallet', title: 'Give an agent a wallet' },
  { name: 'receive-deposits', title: 'Receive deposits' },
  { name: 'mcp-server', title: 'These tools' },
  { name: 'wallets', title: 'Wallets, child addresses, balances and deposits' },
  { name: 'transfers', title: 'Transfers: quotes, routes, states' },
  { name: 'policies', title: 'Spend policies: why a transfer is refused' },
  { name: 'withdrawals', title: 'Withdrawals to banks' },
  { name: 'protocols', title: 'Which payment protocol' },
  { name: 'x402', title: 'x402' },
  { name: 'mpp', title: 'MPP, the Machine Payments Protocol' },
  { name: 'paying', title: 'A fetch that pays, under limits' },
  { name: 'agents', title: 'Tools for models that pay, under limits' },
  { name: 'sessions', title: 'Sessions: pay once, many calls' },
  { name: 'vaults', title: 'Vaults, documents, seals and proofs' },
  { name: 'registry', title: 'The registry of paid routes' },
  { name: 'webhooks', title: 'Webhooks and events' },
  { name: 'idempotency', title: 'Idempotency' },
  { name: 'errors', title: 'Errors' },
]

export interface Resource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly mimeType: string
}

const operationsUri = 'purser://openapi'

/** Every readable resource with its URI. `purser://openapi/<operation id>` is available in addition. */
export const resources: readonly Resource[] = [
  ...pages.map(({ name, title }) => ({ uri: `purser://docs/${name}`, name, title, mimeType: 'text/markdown' })),
  { uri: operationsUri, name: 'openapi', title: 'Every operation of the API', mimeType: 'application/json' },
]

export const operationTemplate = {
  uriTemplate: `${operationsUri}/{operationId}`,
  name: 'operation',
  title: 'One operation of the API, from the OpenAPI document',
  mimeType: 'application/json',
}

interface ReadResource {
  readonly text: string
  readonly mimeType: string
}

/** Texts that were read, by URI: the files do not change while the process runs. */
const kept = new Map<string, ReadResource>()
let keptDocument: ApiDocument | undefined

/** The text of a resource, or undefined if there is none. Only listed files are ever opened. */
export async function readResource(uri: string): Promise<ReadResource | undefined> {
  const known = kept.get(uri)
  if (known !== undefined) return known
  const read = await readAnew(uri)
  if (read !== undefined) kept.set(uri, read)
  return read
}

async function readAnew(uri: string): Promise<ReadResource | undefined> {
  const page = pages.find(({ name }) => uri === `purser://docs/${name}`)
  if (page !== undefined) return { text: await bundled(`docs/${page.name}.md`), mimeType: 'text/markdown' }
  if (uri !== operationsUri && !uri.startsWith(`${operationsUri}/`)) return undefined
  keptDocument ??= JSON.parse(await bundled('openapi.json')) as ApiDocument
  const found = aboutOperations(keptDocument, uri.slice(operationsUri.length + 1))
  return found === undefined ? undefined : { text: JSON.stringify(found), mimeType: 'application/json' }
}

/** Next to the compiled files in the published package; at the workspace root in the repository. */
function bundled(file: string): Promise<string> {
  const beside = new URL(`./${file}`, import.meta.url)
  return readFile(existsSync(beside) ? beside : new URL(`../../../${file}`, import.meta.url), 'utf8')
}

interface ApiDocument {
  readonly 'x-every-operation': Readonly<Record<string, Pick<Described, 'x-problems'>>>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: { readonly 'x-problems': Readonly<Record<string, unknown>> }
}

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly 'x-problems'?: readonly string[]
}

/** The errors of an operation and of its method, with their details. */
function problemsOf(
  { method, 'x-problems': own = [] }: Described & { readonly method: string },
  document: ApiDocument,
) {
  const { components, 'x-every-operation': ofMethods } = document
  const names = [...(ofMethods[method.toLowerCase()]?.['x-problems'] ?? []), ...own]
  return Object.fromEntries(names.map((name) => [name, components['x-problems'][name]]))
}

/**
 * Returns one operation with its schemas and errors, or without an id one line per operation, because the whole
 * document is large.
 */
function aboutOperations(document: ApiDocument, operationId: string): unknown {
  const all = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
  )
  if (operationId !== '') {
    const operation = all.find((one) => one.operationId === operationId)
    return operation && withoutReferences({ ...operation, 'x-problems': problemsOf(operation, document) }, document)
  }
  return all.map(({ operationId, method, path, summary }) => ({ operationId, method, path, summary }))
}
