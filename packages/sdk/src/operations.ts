import type { paths } from './generated/openapi.ts'
import type { Method } from './transport.ts'

/** What the OpenAPI document says of the operation with this method and path. */
export type Operation<M extends Method, P extends keyof paths> = paths[P][Lowercase<M>]

/** The paths that have an operation with this method; their parameters stand in braces. */
export type PathOf<M extends Method> = keyof {
  readonly [P in keyof paths as Operation<M, P> extends { readonly responses: object } ? P : never]: P
} &
  keyof paths

/** The JSON of one answer, or of a request's body. */
export type Json<T> = T extends { readonly content: { readonly 'application/json': infer Value } } ? Value : never

/** The body that an operation takes; never when it takes none. */
export type Body<O> = O extends { readonly requestBody: infer Request } ? Json<Request> : never

/** The query that an operation takes; never when it takes none. */
export type Query<O> = O extends { readonly parameters: { readonly query?: infer Values } }
  ? Extract<Values, object>
  : never

/** The body of an operation's success, 202 left aside; undefined when it has none. */
export type Answer<O> = O extends { readonly responses: infer Responses }
  ? Responses extends { readonly 204: unknown }
    ? undefined
    : Json<Responses[keyof Responses & (200 | 201)]>
  : never

/** One item of what an operation lists. */
export type Item<O> = Answer<O> extends readonly (infer One)[] ? One : never

/** The names in a path's braces. */
export type ParamName<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamName<Rest>
  : never
