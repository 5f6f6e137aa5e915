import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { Needs } from './access.ts'
import type { Call, Caller, Deps, Tenant } from './ctx.ts'
import type { ErrorTable, ProblemMembers } from './errors.ts'
import type { Semaphore } from './semaphores.ts'

/**
 * The way in which a POST handles a repeated Idempotency-Key. `transaction`: the whole handler and the stored response commit together. `intent`: the
 * handler waits for something outside, so the key is tied to its resource in the intent's transaction, and a repeat returns the resource's present
 * state. `batch`: the handler commits requests of one tenant together; the key is claimed and the response stored in the transaction of their batch
 * (`platform/http/batched-keys.ts`).
 */
type IdempotencyMode = 'transaction' | 'intent' | 'batch'

export interface Page<T> {
  readonly items: readonly T[]
  /** Opaque cursor of the next page; undefined on the last. */
  readonly next: string | undefined
  /** The cursor of what follows this many items. With it a page of large items ends early; without it all its items are sent. */
  readonly cursorAfter?: (count: number) => string
  /** Bytes of the rows that the database read for it, if not all of them fit. */
  readonly bytesRead?: number
}

/** The request of a guest, before validation. */
export interface GuestRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** The parts of a request that a handler gets. */
interface OperationRequest<P, Q, I> {
  readonly params: P
  readonly query: Q
  readonly body: I
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The body as a stream, for an operation with `streamsInput`; it must be read to its end or destroyed. */
  readonly stream: Readable | undefined
}

/** A request with a streamed body. */
export type StreamRequest = Pick<OperationRequest<unknown, unknown, unknown>, 'headers' | 'stream'>

/** A response with a status or headers other than the operation's own. */
export class Reply {
  readonly status: number
  /**
   * A `Readable` is sent as fast as the caller reads, and destroyed when the caller disconnects. An `EventStreamResponse` keeps the response open for later
   * writes.
   */
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
  /** Whether the outcome is still open, so that a repeat with the same Idempotency-Key returns the later state. */
  readonly isOpen: boolean
  /**
   * Whether nothing was committed and a repeat runs again: the key of an operation whose `idempotency` is `intent` is released. A key that is
   * tied to a resource is never released.
   */
  readonly runsAgain: boolean

  constructor(
    status: number,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
    { isOpen = status === 202, runsAgain = false }: { readonly isOpen?: boolean; readonly runsAgain?: boolean } = {},
  ) {
    this.status = status
    this.body = body
    this.headers = headers
    this.isOpen = isOpen
    this.runsAgain = runsAgain
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/**
 * The effect of a call, for the agent that may make it. `searches` reads what others published, `ends` cannot be undone, `moves-money` pays
 * somebody. Marked operations are shown to language models: never one that returns a secret or changes permissions.
 */
type AgentUse = 'reads' | 'searches' | 'adds' | 'ends' | 'moves-money'

interface OperationSpec<D extends Deps, P, Q, I, O> {
  readonly id: string
  /** The permissions that its caller needs (`platform/access.ts`). */
  readonly needs: Needs
  /** A suspended organisation may call it too, because it completes or cancels earlier work, or revokes access. */
  readonly whileSuspended?: true
  /** Makes the operation a tool of the MCP server (packages/mcp); otherwise agents do not see it. */
  readonly agent?: AgentUse
  readonly method: Method
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly params?: P
  readonly query?: Q
  readonly input?: I
  /** Schema of the response body; of one item if `list` is set; omitted for 204. */
  readonly output?: O
  /** Schemas of responses with another status, which `run` returns as a `Reply`; streams are not validated. */
  readonly otherOutputs?: Readonly<Record<number, z.ZodType>>
  /** Status of success; default 200, or 204 without an output. */
  readonly status?: number
  readonly list?: boolean
  /** The list is also CSV, if the client prefers that (`platform/http/csv.ts`): the name of the file, without its ending. */
  readonly csvName?: string
  readonly errors?: ErrorTable
  readonly idempotency?: IdempotencyMode
  /**
   * A repeat joins the first request by what it names, and returns the present state of that. Such a request is served without its Idempotency-Key
   * where no more responses may be stored.
   */
  readonly isRepeatable?: true
  /**
   * For `transaction` and `batch`: returns the key with which `resume` finds the resource, from the response body and the path. A response that is
   * too large is not stored; its repeat returns the resource's present state.
   */
  readonly resourceOf?: (response: unknown, params: unknown) => string
  /** The resource's present state, for a repeat with the same Idempotency-Key whose first response was never stored. */
  readonly resume?: (ctx: D & Call, resourceId: string, key: string) => Promise<unknown>
  /** The response contains a secret: its stored copy is sealed and replayed to the same key only. */
  readonly secretResponse?: boolean
  /**
   * The body contains values that could be guessed from its digest, such as an account number: the fingerprint stored for the
   * Idempotency-Key is sealed, and the response is replayed to the same key only.
   */
  readonly secretInput?: boolean
  /** The path names the organisation: one other than the key's is 401, not 404. */
  readonly organisationInPath?: boolean
  /** The operation itself handles text that PostgreSQL cannot store, because its protocol defines a response for it. */
  readonly takesAnyText?: boolean
  /**
   * Members of every problem record of this operation besides the standard ones, for clients of a protocol without problem records. `body`
   * is the parsed request body, undefined if it could not be parsed.
   */
  readonly refusalMembers?: (
    problem: { readonly type: string; readonly detail: string },
    body: unknown,
  ) => ProblemMembers
  /** Values and names in a body above 4 KiB for each token of the caller's limits; fewer than the platform's default if each costs more to check. */
  readonly nodesPerToken?: number
  /** Most bytes of a JSON body; default `bodyBytesMax` of the platform. */
  readonly bodyBytesMax?: number
  /** The body is not loaded into memory: the handler reads it. The media type is for the document. */
  readonly streamsInput?: {
    readonly mediaType: string
    readonly schema: Readonly<Record<string, unknown>>
    /** A possible body, for the API document; of a form its fields. */
    readonly example?: unknown
  }
  /**
   * For `streamsInput` and `intent`: reads the body to its end without an effect and returns the value by which a repeat with the same
   * Idempotency-Key is compared; the handler passes an equal value to `idempotency.commit`.
   */
  readonly readContent?: (ctx: D & Call, request: StreamRequest) => Promise<Uint8Array>
  /** Additional header fields of a success, each with its description. */
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** The media type of a success that is a stream and not JSON. */
  readonly streamsOutput?: string
  /** A possible beginning of such a stream, for the API document. */
  readonly streamExample?: string
  /**
   * Authenticates without an API key: undefined if the request has no such credential, and then a key is required; throws if the credential
   * is invalid.
   */
  readonly guests?: (deps: D, request: GuestRequest) => Promise<Caller | undefined>
  /** The credentials that `guests` takes, for the API document. */
  readonly guestCredentials?: readonly GuestCredential[]
  /** The cost of the call in the caller's rate limits, about one per millisecond of CPU. Default, also if undefined: that of a page of a list, otherwise 1. */
  readonly cost?: (body: Parsed<I>, query: Parsed<Q>) => number | undefined
  /**
   * The call is read-only although it is not a `GET`. Like a `GET`, it is refused while too many responses of the organisation are unread.
   */
  readonly changesNothing?: true
  /**
   * The call's cost in its owner's limit of setting changes (`platform/http/setting-changes.ts`): it leaves an audit record, another permanent row,
   * or events that no other limit counts. Undefined for operations that end access, such as a revocation, so that a leaked key cannot keep its owner
   * from them.
   */
  readonly settingCost?: number
  /** Whether a call with this body leaves no such row, so that it does not count. */
  readonly leavesNothing?: (body: Parsed<I>) => boolean
  /** Queues that the call waits in before it takes a database connection, if many concurrent calls would lock the same rows. */
  readonly semaphores?: (tenant: Tenant, params: Readonly<Record<string, string>>) => readonly Semaphore[]
  readonly run: (ctx: D & Call, request: OperationRequest<Parsed<P>, Parsed<Q>, Parsed<I>>) => unknown
}

/** A credential other than an API key or a session: a scheme of the API document. */
export type GuestCredential = 'vaultToken' | 'streamTicket' | 'signedLink'

/** One public API operation as data, with its types erased; the schemas keep them. */
export interface Operation<D extends Deps = never>
  extends Omit<OperationSpec<D, z.ZodType, z.ZodType, z.ZodType, z.ZodType>, 'run' | 'cost' | 'leavesNothing'> {
  readonly cost?: (body: never, query: never) => number | undefined
  readonly leavesNothing?: (body: never) => boolean
  readonly run: (ctx: D & Call, request: OperationRequest<never, never, never>) => unknown
}

/** An operation with the dependencies of its feature, which are part of the context of its calls. */
export interface BoundOperation extends Operation<Deps> {
  readonly deps: Deps
}

/** Ties operations to the dependencies of their feature: a call of one gets a context that is made of them. */
export function bindOperations<D extends Deps>(
  deps: D,
  operations: readonly Operation<D>[],
): readonly BoundOperation[] {
  return operations.map((operation) => ({ ...operation, deps }) as unknown as BoundOperation)
}

type OutputOf<O> = O extends z.ZodType ? z.input<O> : undefined

/** Declares one operation of a feature. The types of `run` follow from the schemas and the feature's dependencies. */
export type DeclareOperation<D extends Deps> = <
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  I extends z.ZodType | undefined = undefined,
  O extends z.ZodType | undefined = undefined,
  L extends boolean | undefined = undefined,
>(
  spec: Omit<OperationSpec<D, P, Q, I, O>, 'run' | 'list'> & {
    readonly list?: L
    readonly run: (
      ctx: D & Call,
      request: OperationRequest<Parsed<P>, Parsed<Q>, Parsed<I>>,
    ) => ResultOf<O, L> | Promise<ResultOf<O, L>>
  },
) => Operation<D>

/** Returns the function that declares a feature's operations. */
export function operationFor<D extends Deps>(): DeclareOperation<D> {
  return (spec) => spec as unknown as Operation<D>
}

// biome-ignore lint/suspicious/noConfusingVoidType: an operation without an output has a `run` that returns nothing
type ResultOf<O, L> = Reply | (L extends true ? Page<OutputOf<O>> : O extends undefined ? void : OutputOf<O>)
