import type { Answer, Body, Item, Operation, ParamName, PathOf, Query } from './operations.ts'
import { type Listing, listing } from './paging.ts'
import type { CallOptions, Method, Send, SendOptions } from './transport.ts'

/** What goes with an operation: the values for its path's braces, its body, its query, each where it has one. */
interface Request<M extends Method, P extends PathOf<M>> extends CallOptions {
  readonly params?: Readonly<Record<ParamName<P>, string>>
  readonly body?: Body<Operation<M, P>>
  readonly query?: (Query<Operation<M, P>> & object) | undefined
}

/**
 * Sends what the OpenAPI document allows and answers what it promises: path, parameters, body, query and answer are of
 * its types, so that a call of an operation that is not there does not compile. The answer is taken at its word; what
 * money hangs on is read member by member instead, in payments.ts.
 */
export function call<M extends Method, P extends PathOf<M>>(
  send: Send,
  method: M,
  path: P,
  { params, query, ...request }: Request<M, P>,
): Promise<Answer<Operation<M, P>>> {
  const answer = send(method, fill(path, params), { ...request, query: { ...query } })
  return answer.then(({ body }) => body as Answer<Operation<M, P>>)
}

/** The listing of an operation that answers pages; as with `call`, the types are the document's. */
export function list<P extends PathOf<'GET'>>(
  send: Send,
  path: P,
  { params, query, ...options }: Request<'GET', P>,
): Listing<Item<Operation<'GET', P>>> {
  return listing(send, fill(path, params), query, options)
}

/** What goes with an operation that the generated types do not know. */
interface UntypedRequest extends Omit<SendOptions, 'query'> {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: object | undefined
}

/** As `call`, for an operation whose types stand beside its method; the answer is taken at its word. */
export async function callUntyped<T>(
  send: Send,
  method: Method,
  path: string,
  { params, query, ...request }: UntypedRequest,
): Promise<T> {
  const { body } = await send(method, fill(path, params), { ...request, query: { ...query } })
  return body as T
}

/** As `list`, for an operation whose types stand beside its method. */
export function listUntyped<T>(send: Send, path: string, { params, query, ...options }: UntypedRequest): Listing<T> {
  return listing(send, fill(path, params), query, options)
}

/** Puts values into a path's braces, escaped, so that an id can never become another path. */
export function fill(path: string, params: Readonly<Record<string, string>> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => segment(params[name]))
}

function segment(value = ''): string {
  if (value === '' || value === '.' || value === '..') throw new TypeError('An id in a path must not be empty.')
  return encodeURIComponent(value)
}
