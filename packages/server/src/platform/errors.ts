/** What a room refuses: the code in the problem's `type`, its HTTP status, and sentences that are safe to show anybody. */
export interface ErrorEntry {
  readonly status: number
  readonly title: string
  readonly detail: string
}

export type ErrorTable = Readonly<Record<string, ErrorEntry>>

/** Members that a problem record may carry beside the standard ones (RFC 9457, section 3.2). Shown to the caller. */
export type ProblemMembers = Readonly<Record<string, unknown>>

/**
 * A refusal on its way to the caller. Everything in it but `cause` is shown; `cause` goes to the log alone, so what a
 * node, a partner or a driver said never leaks.
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

/** A room's table of refusals, as a function that makes the problem to throw. A code that is not in the table does not compile. */
export function defineErrors<const T extends ErrorTable>(table: T): Fail<T> {
  const fail = (code: keyof T & string, members?: ProblemMembers, cause?: unknown): Problem => {
    const entry = table[code]
    if (entry === undefined) throw new TypeError(`no such error: ${code}`)
    return new Problem(code, entry, members, cause)
  }
  return Object.assign(fail, { table })
}

/** What any operation may answer, whatever its room. */
export const failPlatform = defineErrors({
  unauthorized: { status: 401, title: 'Unauthorized', detail: 'API key is invalid or missing.' },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    detail: 'The request body is not JSON that this service reads.',
  },
  'bad-request': { status: 400, title: 'Bad Request', detail: 'The request is not well-formed HTTP for this address.' },
  'not-found': { status: 404, title: 'Not Found', detail: 'There is nothing at this address.' },
  'request-timeout': { status: 408, title: 'Request Timeout', detail: 'The request did not arrive in time.' },
  'payload-too-large': {
    status: 413,
    title: 'Payload Too Large',
    detail: 'The request body is larger than this address takes.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported Media Type',
    detail: 'Send the body as application/json.',
  },
  'validation-error': {
    status: 422,
    title: 'Validation Error',
    detail: 'The request has faults; each is named in errors.',
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
    detail: 'The first request with this Idempotency-Key is still running. Try again shortly.',
  },
  'rate-limit-exceeded': {
    status: 429,
    title: 'Rate Limit Exceeded',
    detail: 'Too many requests. Wait as Retry-After says.',
  },
  'request-header-fields-too-large': {
    status: 431,
    title: 'Request Header Fields Too Large',
    detail: 'The header of the request is larger than 16 KB.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal Error',
    detail: 'Something failed on our side. Nothing more is known to you; the requestId finds it in our log.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The service cannot answer at the moment. Try again shortly.',
  },
})

/** Whether a thrown value is a refusal with this code. */
export function isProblem(value: unknown, code?: string): value is Problem {
  return value instanceof Problem && (code === undefined || value.code === code)
}
