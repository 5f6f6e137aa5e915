/** A problem record of Purser (RFC 9457 with additional members). */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly requestId?: string
  readonly errors?: readonly FieldFault[]
  readonly reason?: string
  readonly limit?: number
  readonly current?: number
  readonly upgradeUrl?: string
  readonly [member: string]: unknown
}

/** One fault of a request; `path` is a JSON Pointer (RFC 6901). */
export interface FieldFault {
  readonly path: string
  readonly message: string
}

/** Whether a parsed JSON value is an object: neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Reads a problem record from a response body, or returns undefined. Proxies and load balancers respond with HTML,
 * which must not look like a refusal by Purser.
 */
export function readProblem(value: unknown): Problem | undefined {
  if (!isRecord(value)) return undefined
  const { type, title, status, detail } = value
  if (typeof type !== 'string' || typeof title !== 'string' || typeof status !== 'number') return undefined
  const { requestId, errors, reason, limit, current, upgradeUrl, ...others } = value
  return {
    ...others,
    type,
    title,
    status,
    detail: typeof detail === 'string' ? detail : title,
    ...(typeof requestId === 'string' && { requestId }),
    ...(Array.isArray(errors) && { errors: errors.filter(isFieldFault) }),
    ...(typeof reason === 'string' && { reason }),
    ...(typeof limit === 'number' && { limit }),
    ...(typeof current === 'number' && { current }),
    ...(typeof upgradeUrl === 'string' && { upgradeUrl }),
  }
}

/** The code at the end of a problem's type: `…/problems/duplicate-payment` → `duplicate-payment`. */
export function codeOf(problem: Problem): string {
  return problem.type.slice(problem.type.lastIndexOf('/') + 1)
}

function isFieldFault(value: unknown): value is FieldFault {
  return isRecord(value) && typeof value.path === 'string' && typeof value.message === 'string'
}
