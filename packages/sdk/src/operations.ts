import type { paths } from './generated/openapi.ts'
import type { Method } from './transport.ts'

/** The operation with this method and path in the OpenAPI document. */
export type Operation<M extends Method, P extends keyof paths> = paths[P][Lowercase<M>]

/** The paths that have an operation with this method. Parameters are in braces. */
export type PathOf<M extends Method> = keyof {
  readonly [P in keyof paths as Operation<M, P> extends { readonly responses: object } ? P : never]: P
} &
  keyof paths

/** The JSON type of a response or of a request body. */
export type Json<T> = T extends { readonly content: { readonly 'application/json': infer Value } } ? Value : never

/** The request body of an operation, or never if it has none. */
export type Body<O> = O extends { readonly requestBody: infer Request } ? Json<Request> : never

/** The query of an operation, or never if it has none. */
export type Query<O> = O extends { readonly parameters: { readonly query?: infer Values } }
  ? Extract<Values, object>
  : never

/** The success body of an operation, except of 202. Undefined if it has none, with 204. */
export type ResponseBody<O> = O extends { readonly responses: infer Responses }
  ? Responses extends { readonly 204: unknown }
    ? (Responses extends { readonly 200: infer Found } ? Json<Found> : never) | undefined
    : Json<Responses[keyof Responses & (200 | 201)]>
  : never

/** An item of the list that an operation returns. */
export type Item<O> = ResponseBody<O> extends readonly (infer One)[] ? One : never

/** The names of a path's parameters. */
export type ParamName<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamName<Rest>
  : never
