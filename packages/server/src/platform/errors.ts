/** An error of a module: the code in the problem's `type`, its HTTP status, and sentences that are safe to show to anyone. */
export interface ErrorEntry {
  readonly status: number
  readonly title: string
  readonly detail: string
}

export type ErrorTable = Readonly<Record<string, ErrorEntry>>

/** Members of a problem record besides the standard ones (RFC 9457, section 3.2). Shown to the caller. */
/** Extra members of a problem record. Its own members cannot be replaced: `status` is the HTTP status (RFC 9457, section 3.1). */
export type ProblemMembers = Readonly<Record<string, unknown>> & {
  readonly [field in 'type' | 'title' | 'status']?: never
}

/**
 * An error that is returned to the caller. Everything in it except `cause` is shown; `cause` is only logged, so that messages of nodes,
 * partners or drivers never leak.
 */
export class Problem extends Error {
  readonly code: string
  readonly entry: ErrorEntry
  readonly members: ProblemMembers

  constructor(code: string, entry: ErrorEntry, members: ProblemMembers = {}, cause?: unknown) {
    super(`${code}: ${entry.detail}`, cause === undefined ? undefined : { cause })
    this.name = 'Problem'
    this.code = code
    this.entry = entry
    this.members = members
  }
}

export interface Fail<T extends ErrorTable> {
  (code: keyof T & string, members?: ProblemMembers, cause?: unknown): Problem
  readonly table: T
}

/** Returns a function that makes the problems of a module's error table. A code that is not in the table does not compile. */
export function defineErrors<const T extends ErrorTable>(table: T): Fail<T> {
  const fail = (code: keyof T & string, members?: ProblemMembers, cause?: unknown): Problem => {
    const entry = table[code]
    if (entry === undefined) throw new TypeError(`no such error: ${code}`)
    return new Problem(code, entry, members, cause)
  }
  return Object.assign(fail, { table })
}

/** Errors that any operation may return. */
export const failPlatform = defineErrors({
  unauthorized: { status: 401, title: 'Unauthorized', detail: 'API key is invalid or missing.' },
  'role-not-allowed': {
    status: 403,
    title: 'Role Not Allowed',
    detail: 'Your role in this organisation does not allow this.',
  },
  'scope-not-allowed': {
    status: 403,
    title: 'Scope Not Allowed',
    detail: 'The API key is limited to other scopes; `requiredScope` names the one that this needs.',
  },
  'fresh-authentication-required': {
    status: 403,
    title: 'Fresh Authentication Required',
    detail: 'This needs a sign-in within the last ten minutes. Sign in again and repeat the request.',
  },
  'origin-not-allowed': {
    status: 403,
    title: 'Origin Not Allowed',
    detail: 'A request with a session cookie that changes something must come from the dashboard.',
  },
  'environment-not-served': {
    status: 403,
    title: 'Environment Not Served',
    detail: 'X-Service-Environment must name an environment that this deployment serves: test or live.',
  },
  'organisation-not-found': { status: 404, title: 'Organisation Not Found', detail: 'No such organisation.' },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    detail: 'The request body is not valid JSON.',
  },
  'bad-request': { status: 400, title: 'Bad Request', detail: 'The request is not valid HTTP for this address.' },
  'not-found': { status: 404, title: 'Not Found', detail: 'There is nothing at this address.' },
  'request-timeout': { status: 408, title: 'Request Timeout', detail: 'The request did not arrive in time.' },
  'payload-too-large': {
    status: 413,
    title: 'Payload Too Large',
    detail: 'The request body is larger than this address accepts.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported Media Type',
    detail: 'Send the body as application/json.',
  },
  'validation-error': {
    status: 422,
    title: 'Validation Error',
    detail: 'The request has faults; errors lists all of them.',
  },
  'address-format-invalid': {
    status: 422,
    title: 'Address Format Invalid',
    detail: 'An EVM address is 0x and 40 hexadecimal digits; mixed case must be a correct EIP-55 checksum.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'Idempotency Key Reused',
    detail: 'This Idempotency-Key was used with another request. Send a new key.',
  },
  'idempotency-in-progress': {
    status: 409,
    title: 'Idempotency In Progress',
    detail: 'The first request with this Idempotency-Key is still running. Retry shortly.',
  },
  'rate-limit-exceeded': {
    status: 429,
    title: 'Rate Limit Exceeded',
    detail: 'Too many requests. Wait as Retry-After specifies.',
  },
  'request-header-fields-too-large': {
    status: 431,
    title: 'Request Header Fields Too Large',
    detail: 'The header of the request is larger than 16 KB.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal Error',
    detail: 'Something failed on our side. The requestId identifies the request in our log.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The service is unavailable at the moment. Retry shortly.',
  },
})

/** Whether a thrown value is a problem with this code. */
export function isProblem(value: unknown, code?: string): value is Problem {
  return value instanceof Problem && (code === undefined || value.code === code)
}
