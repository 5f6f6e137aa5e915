import type { PurserError } from '@purser/sdk'
import type { Outcome } from './command.ts'

/**
 * What the service said no to, or why it did not answer: its own title, sentence and faults, and the id by which its operator finds
 * the request. Ends with 1 for a no; with 2 where nothing was decided, since the same may do later.
 */
export function refusalOf(error: PurserError): Outcome {
  const { status, code, requestId, problem } = error
  const title = problem?.title ?? (status === undefined ? 'No Answer' : 'Unexpected Answer')
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
