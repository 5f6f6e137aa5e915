import type { Tool } from './tool.ts'

export type Arguments = Readonly<Record<string, unknown>>

/** One fault in the arguments of a call. `path` is a JSON Pointer (RFC 6901). */
export interface Fault {
  readonly path: string
  readonly message: string
}

/** The HTTP request of a tool call. */
export interface ServiceRequest {
  readonly path: `/${string}`
  readonly query: Readonly<Record<string, string | number | boolean>>
  readonly body: Readonly<Record<string, unknown>> | undefined
  readonly idempotencyKey: string | undefined
}

/** Most faults in one result, and the longest name in one, in characters. A model reads all of it. */
const faultsMax = 20
const nameCharactersMax = 100

/**
 * The first faults that prevent the arguments from being sent. Values are validated by the service. An unknown name is
 * refused, never dropped: a misspelled idempotencyKey would pay twice.
 */
export function faultsOf(tool: Tool, args: Arguments): readonly Fault[] {
  const unknown: string[] = []
  for (const name of Object.keys(args)) {
    if (unknown.length === faultsMax) break
    if (!Object.hasOwn(tool.places, name)) unknown.push(name)
  }
  const missing = (tool.inputSchema.required ?? []).filter((name) => args[name] === undefined)
  const unsendable = Object.keys(tool.places).filter((name) => !isSendable(tool, name, args[name]))
  return [
    ...unknown.map((name) => ({ path: pointer(name), message: 'is not an argument of this tool' })),
    ...missing.map((name) => ({ path: pointer(name), message: 'is missing' })),
    ...unsendable.map((name) => ({ path: pointer(name), message: `cannot be a ${tool.places[name]} parameter` })),
  ].slice(0, faultsMax)
}

function isSendable({ places }: Tool, name: string, value: unknown): boolean {
  if (value === undefined || places[name] === 'body') return true
  if (places[name] === 'query') return Object.values(parametersOf(name, value)).every(isScalar)
  if (places[name] === 'key') return typeof value === 'string' && /^[\x21-\x7e]{1,255}$/.test(value)
  // A path segment that URL resolution removes would call another operation.
  return typeof value === 'string' && value.isWellFormed() && !['', '.', '..'].includes(value)
}

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value)

/** An argument in the query: an object is a parameter for each member, `metadata.<key>`. */
function parametersOf(name: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { [name]: value }
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [`${name}.${member}`, inner]))
}

const pointer = (name: string): string => {
  const shown = name.length > nameCharactersMax ? `${name.slice(0, nameCharactersMax)}…` : name
  return `/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The HTTP request for valid arguments. Defaults that the tool documents are filled in. */
export function requestOf(tool: Tool, args: Arguments, idempotencyKey: string | undefined): ServiceRequest {
  const at = (place: string): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries({ ...defaultsOf(tool), ...args }).filter(
        ([name, value]) => tool.places[name] === place && value !== undefined,
      ),
    )
  const params = at('path')
  return {
    path: tool.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(params[name])),
    ) as `/${string}`,
    query: Object.assign({}, ...Object.entries(at('query')).map(([name, value]) => parametersOf(name, value))),
    body: Object.values(tool.places).includes('body') ? at('body') : undefined,
    idempotencyKey,
  }
}

/** Query defaults only. The service fills in defaults of the body. */
function defaultsOf({ inputSchema, places }: Tool): Arguments {
  const entries = Object.entries(inputSchema.properties).filter(([name]) => places[name] === 'query')
  return Object.fromEntries(entries.flatMap(([name, schema]) => ('default' in schema ? [[name, schema.default]] : [])))
}
