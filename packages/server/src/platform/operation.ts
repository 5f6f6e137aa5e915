import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { Actor, Ctx, Deps, Tenant } from './ctx.ts'
import type { ErrorTable, ProblemMembers } from './errors.ts'
import type { Turn } from './turns.ts'

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

/** Somebody who may make one call without an API key. */
export interface Guest {
  readonly tenant: Tenant
  readonly actor: Actor
}

/** What a guest shows: nothing of it is checked yet. */
export interface GuestRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** What a verb is given of a request. */
interface Asked<P, Q, I> {
  readonly params: P
  readonly query: Q
  readonly body: I
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The body as it comes in, for an operation with `streamsInput`; it must be read to its end or destroyed. */
  readonly stream: Readable | undefined
}

/** A request whose body is read as it comes. */
export type StreamRequest = Pick<Asked<unknown, unknown, unknown>, 'headers' | 'stream'>

/** An answer with a status or headers other than the operation's own. */
export class Reply {
  readonly status: number
  /**
   * A `Readable` is sent as it comes, as fast as the caller reads, and destroyed when the caller goes away. A `Live` keeps the
   * answer open for what is still to happen.
   */
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
  /** Whether the outcome is still to come, so that a repeat with the same Idempotency-Key is told the state of then. */
  readonly isOpen: boolean

  constructor(
    status: number,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
    isOpen: boolean = status === 202,
  ) {
    this.status = status
    this.body = body
    this.headers = headers
    this.isOpen = isOpen
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/**
 * What a call does to the world, for the agent that may make it. `searches` reads what others published, `ends` cannot be undone,
 * `moves-money` pays somebody. What is marked is shown to language models: never an operation that answers a secret or changes who may
 * do what.
 */
export type AgentUse = 'reads' | 'searches' | 'adds' | 'ends' | 'moves-money'

export interface OperationSpec<P, Q, I, O> {
  readonly id: string
  /** Makes the operation a tool of the MCP server (packages/mcp); without it, agents are not offered it. */
  readonly agent?: AgentUse
  readonly method: Method
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly params?: P
  readonly query?: Q
  readonly input?: I
  /** Schema of the body of the answer; of one item when `list` is set; left out for 204. */
  readonly output?: O
  /** Schemas of answers with another status, which `run` gives as a `Reply`; of a stream they are not read. */
  readonly otherOutputs?: Readonly<Record<number, z.ZodType>>
  /** Status of success; default 200, or 204 without an output. */
  readonly status?: number
  readonly list?: boolean
  readonly errors?: ErrorTable
  readonly idempotency?: IdempotencyMode
  /** For `intent`: the resource's present state, for a repeat under the same Idempotency-Key whose first answer was never stored. */
  readonly resume?: (ctx: Ctx, resourceId: string, key: string) => Promise<unknown>
  /** The answer holds a secret: its idempotent copy is sealed and replayed to the same key alone. */
  readonly secretAnswer?: boolean
  /**
   * The body holds what could be guessed from its digest, such as an account number: the fingerprint that is kept for the
   * Idempotency-Key is sealed, and the answer is replayed to the same key alone.
   */
  readonly secretInput?: boolean
  /** The path names the organisation: another one than the key's is 401, not 404. */
  readonly organisationInPath?: boolean
  /** The operation itself answers for text that PostgreSQL cannot hold, because its protocol has an answer of its own for it. */
  readonly takesAnyText?: boolean
  /**
   * Members that every problem record of this operation carries beside the standard ones, for clients of a protocol that does not know
   * problem records. `body` is the parsed request body, undefined where it could not be read.
   */
  readonly refusalMembers?: (
    problem: { readonly type: string; readonly detail: string },
    body: unknown,
  ) => ProblemMembers
  /** Bytes of a JSON body; `bodyBytesMax` of the platform when left out. */
  readonly bodyBytesMax?: number
  /** The body is not read into memory: the verb reads it. The media type is for the document. */
  readonly streamsInput?: { readonly mediaType: string; readonly schema: Readonly<Record<string, unknown>> }
  /**
   * For `streamsInput` and `intent`: reads the body to its end without an effect and answers what a repeat with the same
   * Idempotency-Key is compared by; the verb gives the same to `idempotency.commit`.
   */
  readonly readContent?: (ctx: Ctx, request: StreamRequest) => Promise<Uint8Array>
  /** Header fields of its own that a success carries, each with what it says. */
  readonly answerHeaders?: Readonly<Record<string, string>>
  /** The media type of a success that is a stream and not JSON. */
  readonly streamsOutput?: string
  /**
   * Another way in than an API key: undefined when the request shows nothing of the kind, and then the key is asked for; throws
   * where what it shows is not good.
   */
  readonly guests?: (deps: Deps, request: GuestRequest) => Promise<Guest | undefined>
  /** What the call waits for before it takes a database connection, where many at once would lock the same rows. */
  readonly turns?: (tenant: Tenant, params: Readonly<Record<string, string>>) => readonly Turn[]
  readonly run: (ctx: Ctx, request: Asked<Parsed<P>, Parsed<Q>, Parsed<I>>) => unknown
}

/** One public API call as data, with its types forgotten; the schemas keep them. */
export interface Operation extends Omit<OperationSpec<z.ZodType, z.ZodType, z.ZodType, z.ZodType>, 'run'> {
  readonly run: (ctx: Ctx, request: Asked<never, never, never>) => unknown
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
      request: Asked<Parsed<P>, Parsed<Q>, Parsed<I>>,
    ) => AnswerOf<O, L> | Promise<AnswerOf<O, L>>
  },
): Operation {
  return spec as unknown as Operation
}

// biome-ignore lint/suspicious/noConfusingVoidType: an operation without an output has a `run` that returns nothing
type AnswerOf<O, L> = Reply | (L extends true ? Page<Answer<O>> : O extends undefined ? void : Answer<O>)
