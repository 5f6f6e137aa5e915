import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { PurserError } from '@purser/sdk'
import type { Fault } from './request.ts'
import { isReading, type Tool } from './tool.ts'

type Answer = Readonly<Record<string, unknown>>

/** Most characters of one answer: a model reads all of it. */
export const answerCharactersMax = 60_000

/**
 * What the service answered, for programs and as text. An answer to reading that is too long is refused with how to ask for less; one to a
 * write loses its long members instead, since what was done must not look like a failure.
 */
export function answered(tool: Tool, answer: Answer): CallToolResult {
  const text = JSON.stringify(answer)
  if (text.length <= answerCharactersMax) return { content: [{ type: 'text', text }], structuredContent: { ...answer } }
  return isReading(tool) ? tooLong(tool) : shortened(tool, answer)
}

function tooLong(tool: Tool): CallToolResult {
  const less =
    tool.inputSchema.properties.limit === undefined ? 'Ask for a part of it' : 'Ask for less with a smaller limit'
  const detail = `The answer has more than ${answerCharactersMax} characters. ${less}, or read it over HTTP.`
  return refused({ type: 'answer-too-long', title: 'Answer Too Long', detail })
}

/** Without what is long and not promised. It stays what the tool's schema says, since clients check that. */
function shortened({ outputSchema }: Tool, answer: Answer): CallToolResult {
  const promised = outputSchema?.required ?? []
  const isKept = ([name, value]: [string, unknown]): boolean =>
    promised.includes(name) || JSON.stringify(value).length <= 1_000
  const kept = Object.fromEntries(Object.entries(answer).filter(isKept))
  const leftOut = Object.keys(answer).filter((name) => !Object.hasOwn(kept, name))
  const note = `It was done. Too long to show: ${leftOut.join(', ')}.`
  return {
    content: [
      { type: 'text', text: JSON.stringify(kept) },
      { type: 'text', text: note },
    ],
    structuredContent: kept,
  }
}

/** A refusal as a tool says it: a problem record, so that the model reads why and what to change. */
export function refused(problem: Answer): CallToolResult {
  // As text alone: a client checks structured content against the schema of a success, also in a refusal.
  return { isError: true, content: [{ type: 'text', text: JSON.stringify(problem) }] }
}

/** Arguments that were not sent. */
export function misunderstood(errors: readonly Fault[]): CallToolResult {
  const detail = 'Nothing was sent. The arguments do not fit the tool.'
  return refused({ type: 'invalid-arguments', title: 'Invalid Arguments', detail, errors })
}

/**
 * Whether an error says for certain that nothing was done. A client tries again by itself, so that this may be the answer to a second attempt
 * after the first one's was lost: what is refused before the Idempotency-Key is looked up says nothing of the first.
 */
export function isFinal({ status, code, problem }: PurserError): boolean {
  if (status === undefined || problem === undefined || status < 400 || status >= 500) return false
  return ![401, 403, 408].includes(status) && !['idempotency-in-progress', 'rate-limit-exceeded'].includes(code)
}

/** What the service said no to, or why its answer is not known, with the key that a repeat must have. */
export function refusalOf(error: PurserError, idempotencyKey: string | undefined): CallToolResult {
  const { status, code, problem, requestId, retryAfterSeconds } = error
  const unknown = { type: code, title: status === undefined ? 'No Answer' : 'Unexpected Answer', detail: error.message }
  return refused({
    ...(problem ?? unknown),
    status,
    requestId,
    retryAfterSeconds,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(idempotencyKey === undefined || isFinal(error) ? {} : { advice: unknownOutcome }),
  })
}

const unknownOutcome =
  'It may or may not have been done. To find out, call again with the same arguments and this idempotencyKey; never with another.'
