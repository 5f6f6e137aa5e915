import type { z } from 'zod'
import type { Ctx } from './ctx.ts'
import type { ErrorTable } from './errors.ts'

/**
 * How a POST answers the same Idempotency-Key twice.
 * `transaction`: the whole verb and the stored answer commit together. `intent`: the verb awaits something outside, so
 * the key is tied to its resource in the intent's transaction, and a repeat answers the resource's present state.
 */
export type IdempotencyMode = 'transaction' | 'intent'

export interface Page<T> {
  readonly items: readonly T[]
  /** Opaque cursor of the next page; undefined on the last. */
  readonly next: string | undefined
}

/** An answer with a status or headers other than the operation's own. */
export class Reply {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    this.status = status
    this.body = body
    this.headers = headers
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

export interface OperationSpec<P, Q, I, O> {
  readonly id: string
  readonly method: Method
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly params?: P
  readonly query?: Q
  readonly input?: I
  /** Schema of the body of the answer; of one item when `list` is set; left out for 204. */
  readonly output?: O
  /** Schemas of answers with another status, which `run` gives as a `Reply`. */
  readonly otherOutputs?: Readonly<Record<number, z.ZodType>>
  /** Status of success; default 200, or 204 without an output. */
  readonly status?: number
  readonly list?: boolean
  readonly errors?: ErrorTable
  readonly idempotency?: IdempotencyMode
  /** For `intent`: the resource's present state, for a repeat whose first answer was never stored. */
  readonly resume?: (ctx: Ctx, resourceId: string) => Promise<unknown>
  /** The answer holds a secret: its idempotent copy is sealed and replayed to the same key alone. */
  readonly secretAnswer?: boolean
  /** The path names the organisation: another one than the key's is 401, not 404. */
  readonly organisationInPath?: boolean
  readonly run: (
    ctx: Ctx,
    request: {
      params: Parsed<P>
      query: Parsed<Q>
      body: Parsed<I>
      headers: Readonly<Record<string, string | undefined>>
    },
  ) => unknown
}

/** One public API call as data, with its types forgotten; the schemas keep them. */
export interface Operation extends Omit<OperationSpec<z.ZodType, z.ZodType, z.ZodType, z.ZodType>, 'run'> {
  readonly run: (
    ctx: Ctx,
    request: { params: never; query: never; body: never; headers: Readonly<Record<string, string | undefined>> },
  ) => unknown
}

type Answer<O> = O extends z.ZodType ? z.input<O> : undefined

/** Declares an operation. The types of `run` follow from its schemas. */
export function operation<
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  I extends z.ZodType | undefined = undefined,
  O extends z.ZodType | undefined = undefined,
  L extends boolean | undefined = undefined,
>(
  spec: Omit<OperationSpec<P, Q, I, O>, 'run' | 'list'> & {
    readonly list?: L
    readonly run: (
      ctx: Ctx,
      request: {
        params: Parsed<P>
        query: Parsed<Q>
        body: Parsed<I>
        headers: Readonly<Record<string, string | undefined>>
      },
    ) => AnswerOf<O, L> | Promise<AnswerOf<O, L>>
  },
): Operation {
  return spec as unknown as Operation
}

// biome-ignore lint/suspicious/noConfusingVoidType: an operation without an output has a `run` that returns nothing
type AnswerOf<O, L> = Reply | (L extends true ? Page<Answer<O>> : O extends undefined ? void : Answer<O>)
