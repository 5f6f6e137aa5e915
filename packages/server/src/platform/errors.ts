/**
 * An error of a module: its HTTP status, and sentences that are safe to show to anyone. `causes` and `fix` are Markdown for the page of the
 * error, which the problem's `type` leads to; `guides/error-pages.test.ts` checks the operations and commands that they name.
 */
export interface ErrorEntry {
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Possible causes, the most frequent first. */
  readonly causes: readonly string[]
  /** The remedy for the caller. */
  readonly fix: string
}

export type ErrorTable = Readonly<Record<string, ErrorEntry>>

/**
 * Members of a problem record besides the standard ones (RFC 9457, section 3.2), shown to the caller. The record's own members cannot be replaced:
 * `status` is the HTTP status (section 3.1).
 */
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

/** The status and texts of `archived`, which each feature with archived rows completes with its causes and its fix. */
export const archivedRecord = {
  status: 410,
  title: 'Archived',
  detail: 'The event or payment is old and was moved to the archive of the service. Ask the operator for it.',
} as const

/** Errors that any operation may return. */
export const failPlatform = defineErrors({
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    detail: 'API key is invalid or missing.',
    causes: [
      'The request has no `Authorization` header, or one that is not `Bearer` and an API key.',
      'Part of the key is missing or mistyped, or the key was revoked or has expired (`expiresAt`).',
      'The key is of an environment that this deployment does not serve, or the `orgId` in the path is another organisation than the key’s.',
      'The session of a person who was signed in has ended.',
    ],
    fix: 'Read `detail`: it names which of these it is. Send `Authorization: Bearer svc_test_sk_…`. If the key is lost, make another one in the dashboard under **API keys**, with `POST /organisations/current/api-keys` and a valid key, or with `purser admin create-key`. In the dashboard, sign in again.',
  },
  'role-not-allowed': {
    status: 403,
    title: 'Role Not Allowed',
    detail: 'Your role in this organisation does not allow this.',
    causes: [
      'A person who is signed in has a role below the one that the operation needs: a viewer writes, or a member changes members or keys.',
      'An API key grants or removes the role `owner` or `admin`, which only a person may.',
      'A key with limited scopes or an end invites somebody who could do more than the key, or longer, or a test key changes somebody who works in the live environment.',
    ],
    fix: 'Ask an owner or admin of the organisation to do it, or to raise your role with `PATCH /organisations/current/members/{accountId}`. [Organisations and keys](/docs/organisations-and-keys) lists what each role may do.',
  },
  'scope-not-allowed': {
    status: 403,
    title: 'Scope Not Allowed',
    detail: 'The API key lacks the required scope; requiredScope names it.',
    causes: ['The API key was made with `scopes`, and the scope that this operation needs is not one of them.'],
    fix: 'Read `requiredScope`. Make another key whose `scopes` contain it (`POST /organisations/current/api-keys`, with a key that has it, or in the dashboard) and send that one. The scopes of an existing key cannot be changed.',
  },
  'fresh-authentication-required': {
    status: 403,
    title: 'Fresh Authentication Required',
    detail: 'This needs a sign-in within the last ten minutes. Sign in again and repeat the request.',
    causes: [
      'A person who is signed in to the dashboard approves a movement, moves money, shows a secret or loosens a policy, and signed in more than ten minutes ago.',
    ],
    fix: 'Sign in again, then send the request within ten minutes. Requests with an API key never get this error.',
  },
  'organisation-suspended': {
    status: 403,
    title: 'Organisation Suspended',
    detail:
      'The operator suspended this organisation: it can read, but cannot sell or change anything. GET /organisations/current has the reason.',
    causes: [
      'The operator of the deployment suspended the organisation; its reads go on, and what was paid or begun before still ends.',
      'The account owns a suspended organisation and creates another one.',
    ],
    fix: 'Read `suspensionReason` of `GET /organisations/current`, and contact the operator. Repeat the request after `purser admin resume-organisation`.',
  },
  'origin-not-allowed': {
    status: 403,
    title: 'Origin Not Allowed',
    detail: 'A request with a session cookie that changes something must come from the dashboard.',
    causes: [
      'A request other than GET is authenticated by the session cookie of the dashboard, and its `Origin` header is missing or is not the origin of the dashboard.',
    ],
    fix: 'Programs send an API key in `Authorization` and no cookie. If the dashboard itself gets this error, the operator has `DASHBOARD_URL` set to another origin than the one in the browser’s address bar.',
  },
  'environment-not-served': {
    status: 403,
    title: 'Environment Not Served',
    detail: 'X-Service-Environment must name an environment that this deployment serves: test or live.',
    causes: [
      '`X-Service-Environment` of a person’s request is neither `test` nor `live`.',
      'It is one of the two, and the operator’s setting `ENVIRONMENTS` leaves it out.',
    ],
    fix: 'Send `X-Service-Environment: test` (the default) or `live`, whichever the deployment serves. With an API key leave the header out: the key decides the environment.',
  },
  'organisation-not-found': {
    status: 404,
    title: 'Organisation Not Found',
    detail: 'No such organisation.',
    causes: [
      'A person’s request has no `X-Service-Organisation` header, or it names an organisation in which the person is not a member.',
      'The person was removed from the organisation since the page was opened.',
    ],
    fix: 'Send `X-Service-Organisation` with an `id` that `GET /account` lists for you. With an API key leave it out: the key decides the organisation.',
  },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    detail: 'The request body is not valid JSON.',
    causes: [
      'The body is not JSON: a trailing comma, a single quote, an unquoted name, or a body that was cut off.',
      'The body nests deeper than 32 levels.',
      'In a shell, quotes around the body of `curl -d` were changed before curl saw them.',
    ],
    fix: 'Make the body with a JSON encoder (`JSON.stringify`, `json.dumps`) instead of by hand; with curl, put it in a file and send `-d @body.json`.',
  },
  'bad-request': {
    status: 400,
    title: 'Bad Request',
    detail: 'The request is not valid HTTP for this address.',
    causes: [
      'The request line or a header field is not valid HTTP/1.1, for example a space in the path or a line break in a header value.',
      '`Content-Length` is not the length of the body, or it stands beside `Transfer-Encoding`.',
      'The body has more than a thousand chunks, of fewer than 64 bytes on average.',
      'TLS was spoken to a port that serves plain HTTP.',
      'The request has no `Host` (HTTP/1.1), two `Host` or two `Authorization` fields, or an `Expect` other than `100-continue`.',
    ],
    fix: 'Send the request with an HTTP client instead of writing it yourself, encode path segments with `encodeURIComponent`, and compare the scheme of the base address with the one that the deployment serves. The connection was closed: open a new one.',
  },
  'not-found': {
    status: 404,
    title: 'Not Found',
    detail: 'No operation has this method and path.',
    causes: [
      'No operation has this method and path: a misspelled segment, a missing or additional prefix, or a trailing slash.',
      'An id in the path has the prefix of another resource, or is longer than any id.',
    ],
    fix: 'Compare method and path with the API reference (`/docs/reference`) or `/openapi.json`. Paths have no version segment: `POST /payments/challenge`, not `/v1/payments/challenge`.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request Timeout',
    detail: 'The request did not arrive in time. Send it again.',
    causes: [
      'The head or the body of the request was not complete in time: a JSON body has 60 seconds.',
      'The client opened a connection and sent nothing, or a proxy stopped forwarding the body.',
      'Less than 5 MiB of a file arrived within two minutes while other organisations needed the memory for uploads.',
    ],
    fix: 'Send the whole body at once. If a proxy is in between, look at its upload limits. The connection was closed; send the request again on a new one, with the same `Idempotency-Key`.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Payload Too Large',
    detail: 'The request body is larger than this operation accepts. Send less in one request.',
    causes: [
      'A JSON body is larger than 1 MiB (4 MiB for `POST /vaults/{id}/documents`, whose `data` may take 1 MiB as JSON).',
    ],
    fix: 'Send less in one request: split lists over several requests, and upload large content with `POST /vaults/{id}/files` instead of a document.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported Media Type',
    detail: 'Send the body as application/json.',
    causes: [
      'The body has no `Content-Type`, or one other than `application/json`; curl sends `application/x-www-form-urlencoded` with `-d` by default.',
      'A file was sent to an address that takes JSON, or JSON to `POST /vaults/{id}/files`, which takes `multipart/form-data`.',
      'The body has a `Content-Encoding`. The service decodes none: send the body uncompressed.',
    ],
    fix: "Send `Content-Type: application/json` (curl: `-H 'Content-Type: application/json'`). For files send `multipart/form-data` with one part named `file`.",
  },
  'validation-error': {
    status: 422,
    title: 'Validation Error',
    detail: 'The request has faults; errors lists all of them.',
    causes: [
      'A parameter is missing, unknown, of another type or out of its bounds. Unknown names are refused so that a misspelled option is not ignored.',
      'An amount was sent as a number: amounts are text, such as `"0.01"`.',
      'A `cursor` is of another list, or the filters were changed since the first page.',
    ],
    fix: 'Read `errors`: each entry has a `path` (a JSON Pointer into the body, or the name of a query parameter) and a `message`. All faults are listed at once. Correct them; the `Idempotency-Key` is still free.',
  },
  'address-format-invalid': {
    status: 422,
    title: 'Address Format Invalid',
    detail: 'An EVM address is 0x and 40 hexadecimal digits; mixed case must be a correct EIP-55 checksum.',
    causes: [
      'The address is not `0x` and 40 hexadecimal digits: a name such as `name.eth`, an address of another kind of chain, or a transaction hash.',
      'It has upper and lower case letters and its EIP-55 checksum does not match, so at least one character is mistyped.',
    ],
    fix: 'Copy the address again from where it is shown; do not type it. `errors` names the parameter. Only if the address is known to be right may you send it in lower case, which has no checksum.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'Idempotency Key Reused',
    detail: 'This Idempotency-Key was used with another request. Send a new key.',
    causes: [
      'The same `Idempotency-Key` was sent within 24 hours with another method, path or body. The body is compared byte by byte, so another order of the same JSON is another body.',
    ],
    fix: 'To repeat the first request, send exactly its bytes. For another request, draw another key, for example a UUID for each order.',
  },
  'idempotency-in-progress': {
    status: 409,
    title: 'Idempotency In Progress',
    detail: 'The first request with this Idempotency-Key is still running. Retry shortly.',
    causes: [
      'Two requests with the same `Idempotency-Key` overlap: the client timed out and repeated while the first one still ran.',
      'The process that ran the first one died; its key is free after at most 60 seconds.',
    ],
    fix: 'Send the same request again after the seconds in `Retry-After`: it then gets the response of the first one. Do not use another key, which would repeat the work.',
  },
  'idempotency-storage-exceeded': {
    status: 429,
    title: 'Idempotency Storage Exceeded',
    detail:
      'The organisation has used its share of the storage for responses to the Idempotency-Keys of a day. Nothing was done; retry later.',
    causes: [
      'The responses that are stored for the organisation’s `Idempotency-Key`s of the last 24 hours take its share of the storage: half of what other organisations leave. `current` is their bytes.',
    ],
    fix: 'Send requests that change nothing twice, such as `POST /payments/challenge`, without an `Idempotency-Key`, and the others later: stored responses are deleted after 24 hours. A repeat of a request that has a stored response still gets it. The operator’s setting is `IDEMPOTENCY_MEGABYTES_MAX`.',
  },
  'rate-limit-exceeded': {
    status: 429,
    title: 'Rate Limit Exceeded',
    detail: 'Too many requests. Wait as Retry-After specifies.',
    causes: [
      'The API key, its organisation or, without a valid key, the remote address sent more requests than its limit. `RateLimit-Policy` of every response states the limit.',
      'An expensive operation counts as several requests.',
      'One `ip` got more than 20 challenges in 60 seconds.',
      'Too many bodies of one organisation are being received at the same time.',
    ],
    fix: 'Wait for the seconds in `Retry-After`, then repeat with the same `Idempotency-Key`. Spread requests with the figures in `RateLimit`; fetch lists with a larger `limit`; use webhooks instead of polling. The operator’s settings are `RATE_LIMIT_PER_SECOND` and `ORGANISATION_RATE_LIMIT_PER_SECOND`.',
  },
  'request-header-fields-too-large': {
    status: 431,
    title: 'Request Header Fields Too Large',
    detail: 'The header of the request is larger than 16 KB.',
    causes: [
      'All header fields together are above 16 KB: usually a payment header that was repeated, or cookies that a browser added.',
    ],
    fix: 'Send one payment header with one credential, and no cookies with an API key. Put data into the body instead of header fields.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal Error',
    detail: 'Something failed on our side. The requestId identifies the request in our log.',
    causes: ['The service has a defect, or reached a state that it cannot handle. The transaction was rolled back.'],
    fix: 'Repeat once with the same `Idempotency-Key`: a POST that took effect returns its result. If it fails again, give the operator the `requestId`; the log line with that id has the cause.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service Unavailable',
    detail: 'The service is unavailable at the moment. Retry shortly.',
    causes: [
      'The database cannot be reached, is being restored, or more requests wait for it than may wait.',
      'The process is shutting down.',
    ],
    fix: 'Repeat after a second, then with growing pauses, with the same `Idempotency-Key`; the SDK does this by itself. The operator sees the reason at `GET /readyz` and in the log.',
  },
})

/** Whether a thrown value is a problem with this code. */
export function isProblem(value: unknown, code?: string): value is Problem {
  return value instanceof Problem && (code === undefined || value.code === code)
}
