import type { PurserError } from '@purser/sdk'
import type { Outcome } from './command.ts'

/**
 * Turns an error of the service into an outcome: its title, detail and field errors, and the request id for its operator. Exits
 * with 1 for a 4xx; with 2 where nothing was decided and a retry may succeed.
 */
export function refusalOf(error: PurserError): Outcome {
  const { status, code, requestId, problem } = error
  const title = problem?.title ?? (status === undefined ? 'No Response' : 'Unexpected Response')
  const detail = problem?.detail ?? error.message
  const errors = problem?.errors ?? []
  const reason = typeof problem?.reason === 'string' ? [`Reason: ${problem.reason}`] : []
  return {
    exitCode: status !== undefined && status >= 400 && status < 500 ? 1 : 2,
    lines: [
      `${title}${status === undefined ? '' : ` (${status})`}`,
      detail,
      ...errors.map(({ path, message }) => `  ${path || 'the request'}: ${message}`),
      ...reason,
      ...(requestId === undefined ? [] : [`Request ${requestId}`]),
    ],
    json: { error: { code, status, title, detail, errors, requestId } },
  }
}
