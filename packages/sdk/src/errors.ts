import { codeOf, type FieldFault, type Problem } from './problem.ts'

/** What an error knows about the answer that caused it. */
export interface ErrorFacts {
  readonly status?: number | undefined
  readonly code: string
  readonly requestId?: string | undefined
  readonly problem?: Problem | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly cause?: unknown
}

/** Everything that the client throws. `code` is the problem's code and is what to branch on; messages may change. */
export class PurserError extends Error {
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined
  readonly code: string
  /** Give this to support: it finds the request in Purser's log. */
  readonly requestId: string | undefined
  readonly problem: Problem | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = new.target.name
    this.status = facts.status
    this.code = facts.code
    this.requestId = facts.requestId
    this.problem = facts.problem
    this.retryAfterSeconds = facts.retryAfterSeconds
  }
}

/** 401 and 403: the key is missing, wrong, revoked, of another environment, or may not do this. */
export class AuthenticationError extends PurserError {}

/** 400, 413, 415, 422: the request itself is at fault. */
export class ValidationError extends PurserError {
  /** Every fault at once. */
  get errors(): readonly FieldFault[] {
    return this.problem?.errors ?? []
  }
}

/** 402: a payment was refused. */
export class PaymentRefusedError extends PurserError {
  /** The payment protocol's own code for the refusal. */
  get reason(): string {
    return this.problem?.reason ?? this.code
  }
}

/** 404: no such thing in this organisation and environment. */
export class NotFoundError extends PurserError {}

/** 409: the thing exists already, or is not in a state that allows this. */
export class ConflictError extends PurserError {}

/** 429 `rate-limit-exceeded`: too many requests; waiting helps. */
export class RateLimitError extends PurserError {}

/** 429 with a quota: the plan is used up; waiting a moment does not help. */
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

/** 5xx, or an answer that is not Purser's: what was asked may or may not have happened. */
export class UnavailableError extends PurserError {}

/** No answer at all (refused, reset, timed out): what was asked may or may not have happened. */
export class ConnectionError extends PurserError {}

/** Makes the error of the right kind for an answer that is not a success. */
export function errorOf(status: number, facts: Omit<ErrorFacts, 'status' | 'code'>): PurserError {
  const { problem } = facts
  const code = problem === undefined ? `http-${status}` : codeOf(problem)
  const Kind = kindOf(status, code)
  return new Kind(problem?.detail ?? `Purser answered with status ${status}.`, { ...facts, status, code })
}

function kindOf(status: number, code: string): typeof PurserError {
  if (status === 401 || status === 403) return AuthenticationError
  if (status === 402) return PaymentRefusedError
  if (status === 404) return NotFoundError
  if (status === 409) return ConflictError
  if (status === 429) return isQuota(code) ? LimitError : RateLimitError
  if (status === 400 || status === 413 || status === 415 || status === 422) return ValidationError
  if (status >= 500 || status < 400) return UnavailableError
  return PurserError
}

/** Whether a 429 says that a quota is used up, so that sending again soon is of no use. */
export function isQuota(code: string): boolean {
  return code !== 'rate-limit-exceeded' && code !== 'http-429'
}
