import { must } from './check.ts'
import type { Body, Item, Operation, ParamName, PathOf, Query, ResponseBody } from './operations.ts'
import { type Listing, listing } from './paging.ts'
import type { CallOptions, Method, Send, SendOptions } from './transport.ts'

/** The path parameters, the body and the query of an operation. A part that the operation does not have is absent. */
interface Request<M extends Method, P extends PathOf<M>> extends CallOptions {
  readonly params?: Readonly<Record<ParamName<P>, string>>
  readonly body?: Body<Operation<M, P>>
  readonly query?: (Query<Operation<M, P>> & object) | undefined
}

/**
 * Calls an operation of the OpenAPI document. Path, parameters, body, query and response have the document's types,
 * so a call of an unknown operation does not compile. The response is not validated. Responses that money depends on
 * are validated in payments.ts.
 */
export function call<M extends Method, P extends PathOf<M>>(
  send: Send,
  method: M,
  path: P,
  { params, query, ...request }: Request<M, P>,
): Promise<ResponseBody<Operation<M, P>>> {
  const response = send(method, fill(path, params), { ...request, query: { ...query } })
  return response.then(({ body }) => body as ResponseBody<Operation<M, P>>)
}

/** Lists an operation that returns pages. As with `call`, the types come from the document. */
export function list<P extends PathOf<'GET'>>(
  send: Send,
  path: P,
  { params, query, ...options }: Request<'GET', P>,
): Listing<Item<Operation<'GET', P>>> {
  return listing(send, fill(path, params), query, options)
}

/** The inputs of an operation without generated types. */
interface UntypedRequest extends Omit<SendOptions, 'query'> {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: object | undefined
}

/** Like `call`, for an operation whose types are declared beside its method. The response is not validated. */
export async function callUntyped<T>(
  send: Send,
  method: Method,
  path: string,
  { params, query, ...request }: UntypedRequest,
): Promise<T> {
  const { body } = await send(method, fill(path, params), { ...request, query: { ...query } })
  return body as T
}

/** Like `list`, for an operation whose types are declared beside its method. */
export function listUntyped<T>(send: Send, path: string, { params, query, ...options }: UntypedRequest): Listing<T> {
  return listing(send, fill(path, params), query, options)
}

/** Fills the parameters of a path. Values are escaped, so an id cannot change the path. */
export function fill(path: string, params: Readonly<Record<string, string>> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => segment(params[name]))
}

function segment(value: unknown = ''): string {
  const remedy = 'Give the id as text, such as "pay_01h455vb4pex5vsknk084sn02q".'
  must(typeof value === 'string', 'The id in the path', value, remedy)
  if (value === '' || value === '.' || value === '..') throw new TypeError('An id in a path must not be empty.')
  return encodeURIComponent(value)
}
