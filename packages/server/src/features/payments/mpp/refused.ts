import type { MppProblem } from '@purser/protocol'
import { fail } from '../errors.ts'

/**
 * Returns the refusal of an MPP credential: 402, with the code of the Payment scheme's own problem type in `reason` and one
 * sentence in `message`. The payer sees the sentence, so it must name no secret and nothing of another tenant.
 */
export function refusedMpp(
  problem: MppProblem,
  message: string,
  members: Readonly<Record<string, unknown>> = {},
): Error {
  return fail('payment-verification-failed', { reason: problem, message, ...members })
}
