import { codeOf, type FieldFault, type Problem } from './problem.ts'

/** Facts about the response that caused an error. */
export interface ErrorFacts {
  readonly status?: number | undefined
  readonly code: string
  readonly requestId?: string | undefined
  readonly problem?: Problem | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly idempotencyKey?: string | undefined
  /** Whether the outcome of an earlier attempt of the same call is not known. */
  readonly isAfterLost?: boolean | undefined
  readonly cause?: unknown
}

/**
 * The base class of all errors that the client throws. Branch on `code`, the code of the problem record. Messages may
 * change.
 *
 * @example
 * import { createPurser, PurserError } from '@purser/sdk'
 *
 * const purser = createPurser({ apiKey: process.env.PURSER_API_KEY ?? '', baseUrl: 'https://pay.example.com' })
 * try {
 *   await purser.account.get()
 * } catch (error) {
 *   if (error instanceof PurserError) console.error(error.code, error.requestId)
 * }
 */
export class PurserError extends Error {
  /** HTTP status. Undefined if there was no response. */
  readonly status: number | undefined
  readonly code: string
  /** Include it when you contact support. It identifies the request in Purser's log. */
  readonly requestId: string | undefined
  readonly problem: Problem | undefined
  readonly retryAfterSeconds: number | undefined
  /** The Idempotency-Key that was sent, yours or a generated one. Undefined if the request carried none. */
  readonly idempotencyKey: string | undefined
  /**
   * Whether the service refused the request for certain. If false, the request may have taken effect: repeat it with
   * the same `idempotencyKey`, because with another key it can take effect twice.
   */
  readonly isOutcomeKnown: boolean
  /**
   * Whether the service refuses with this before it looks at the Idempotency-Key: 401, 403 and `rate-limit-exceeded`.
   * Such a refusal decides nothing about an earlier call with the same key.
   */
  readonly isBeforeKey: boolean

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = new.target.name
    this.status = facts.status
    this.code = facts.code
    this.requestId = facts.requestId
    this.problem = facts.problem
    this.retryAfterSeconds = facts.retryAfterSeconds
    this.idempotencyKey = facts.idempotencyKey
    this.isOutcomeKnown = isDecided(facts)
    this.isBeforeKey = isBeforeKey(facts)
  }
}

function isBeforeKey({ status, code }: ErrorFacts): boolean {
  return status === 401 || status === 403 || code === 'rate-limit-exceeded'
}

function isDecided(facts: ErrorFacts): boolean {
  const { status, code, problem, isAfterLost = false } = facts
  if (status === undefined || status < 400 || status >= 500 || problem === undefined) return false
  if (status === 408 || code === 'idempotency-in-progress') return false
  return !(isAfterLost && isBeforeKey(facts))
}

/**
 * 401: the API key is missing, invalid or revoked, or the session has ended.
 *
 * @example
 * import { AuthenticationError, type Purser } from '@purser/sdk'
 *
 * export async function isKeyGood(purser: Purser): Promise<boolean> {
 *   try {
 *     await purser.account.get()
 *     return true
 *   } catch (error) {
 *     if (error instanceof AuthenticationError) return false
 *     throw error
 *   }
 * }
 */
export class AuthenticationError extends PurserError {}

/**
 * 403: the caller is known and may not do this. `code` says why, such as `policy-denied` (the wallet's spend policy),
 * `scope-not-allowed` (the key's scopes) or `approval-needs-person`.
 *
 * @example
 * import { PermissionDeniedError } from '@purser/sdk'
 *
 * export function deniedRuleOf(error: unknown): unknown {
 *   if (!(error instanceof PermissionDeniedError) || error.code !== 'policy-denied') return undefined
 *   return error.problem?.rule
 * }
 */
export class PermissionDeniedError extends PurserError {}

/**
 * 400, 413, 415, 422: the request is invalid.
 *
 * @example
 * import { ValidationError } from '@purser/sdk'
 *
 * export function faultsOf(error: unknown): readonly string[] {
 *   return error instanceof ValidationError ? error.errors.map(({ path, message }) => `${path}: ${message}`) : []
 * }
 */
export class ValidationError extends PurserError {
  /** All faults of the request. */
  get errors(): readonly FieldFault[] {
    return this.problem?.errors ?? []
  }
}

/**
 * 402: a payment was refused.
 *
 * @example
 * import { PaymentRefusedError } from '@purser/sdk'
 *
 * export function reasonOf(error: unknown): string | undefined {
 *   return error instanceof PaymentRefusedError ? error.reason : undefined
 * }
 */
export class PaymentRefusedError extends PurserError {
  /** The payment protocol's own code for the refusal. */
  get reason(): string {
    return this.problem?.reason ?? this.code
  }
}

/**
 * 404: the object does not exist in this organisation and environment.
 *
 * @example
 * import { NotFoundError, type Payment, type Purser } from '@purser/sdk'
 *
 * export async function findPayment(purser: Purser, id: string): Promise<Payment | undefined> {
 *   try {
 *     return await purser.payments.get(id)
 *   } catch (error) {
 *     if (error instanceof NotFoundError) return undefined
 *     throw error
 *   }
 * }
 */
export class NotFoundError extends PurserError {}

/**
 * 409: the object already exists, or its state does not allow this.
 *
 * @example
 * import { ConflictError } from '@purser/sdk'
 *
 * export function isUsedAlready(error: unknown): boolean {
 *   return error instanceof ConflictError && error.code === 'duplicate-payment'
 * }
 */
export class ConflictError extends PurserError {}

/**
 * 429 `rate-limit-exceeded`: too many requests. Retry later.
 *
 * @example
 * import { RateLimitError } from '@purser/sdk'
 *
 * export function waitMsOf(error: unknown): number | undefined {
 *   return error instanceof RateLimitError ? (error.retryAfterSeconds ?? 1) * 1_000 : undefined
 * }
 */
export class RateLimitError extends PurserError {}

/**
 * 429 with a quota: the plan's allowance is used up. Retrying soon does not help.
 *
 * @example
 * import { LimitError } from '@purser/sdk'
 *
 * export function noticeOf(error: unknown): string | undefined {
 *   if (!(error instanceof LimitError)) return undefined
 *   return `${error.current} of ${error.limit} are used. Upgrade: ${error.upgradeUrl}`
 * }
 */
export class LimitError extends PurserError {
  get limit(): number | undefined {
    return this.problem?.limit
  }
  get current(): number | undefined {
    return this.problem?.current
  }
  get upgradeUrl(): string | undefined {
    return this.problem?.upgradeUrl
  }
}

/**
 * 5xx, or a response that is not from Purser. The outcome is unknown.
 *
 * @example
 * import { UnavailableError } from '@purser/sdk'
 *
 * export function keyToRepeatWith(error: unknown): string | undefined {
 *   return error instanceof UnavailableError ? error.idempotencyKey : undefined
 * }
 */
export class UnavailableError extends PurserError {}

/**
 * No response (connection refused, reset or timed out). The outcome is unknown.
 *
 * @example
 * import { ConnectionError, type Purser } from '@purser/sdk'
 *
 * export async function isReachable(purser: Purser): Promise<boolean> {
 *   return purser.account.get().then(
 *     () => true,
 *     (error: unknown) => !(error instanceof ConnectionError),
 *   )
 * }
 */
export class ConnectionError extends PurserError {}

/** Returns the error for a response that is not a success. */
export function errorOf(status: number, facts: Omit<ErrorFacts, 'status' | 'code'>): PurserError {
  const { problem } = facts
  const code = problem === undefined ? `http-${status}` : codeOf(problem)
  const Kind = kindOf(status, code)
  return new Kind(messageOf(problem) ?? `The response has status ${status} and is not one of Purser. Check baseUrl.`, {
    ...facts,
    status,
    code,
  })
}

const shownFaultsMax = 3
const faultLengthMax = 200

/** The detail and the first faults of the problem, because logs often contain only the message. */
function messageOf(problem: Problem | undefined): string | undefined {
  if (problem?.errors === undefined || problem.errors.length === 0) return problem?.detail
  const { detail, errors } = problem
  const shown = errors.slice(0, shownFaultsMax).map(({ path, message }) => shortened(`${path}: ${message}`))
  const others = errors.length > shownFaultsMax ? [`and ${errors.length - shownFaultsMax} more`] : []
  return `${detail} ${[...shown, ...others].join('; ')}`
}

function shortened(text: string): string {
  return text.length > faultLengthMax ? `${text.slice(0, faultLengthMax)}…` : text
}

function kindOf(status: number, code: string): typeof PurserError {
  if (status === 401) return AuthenticationError
  if (status === 403) return PermissionDeniedError
  if (status === 402) return PaymentRefusedError
  if (status === 404) return NotFoundError
  if (status === 409) return ConflictError
  if (status === 429) return isQuota(code) ? LimitError : RateLimitError
  if (status === 400 || status === 413 || status === 415 || status === 422) return ValidationError
  if (status >= 500 || status < 400) return UnavailableError
  return PurserError
}

/** Whether a 429 means that a quota is used up, so that retrying soon is pointless. */
export function isQuota(code: string): boolean {
  return code !== 'rate-limit-exceeded' && code !== 'http-429'
}
