import type { MppProblem } from '@purser/protocol'
import { fail } from '../errors.ts'

/**
 * The refusal of an MPP credential: 402, with the code of the Payment scheme's own problem type in `reason` and one plain
 * sentence in `message`. The sentence goes to the payer: it names no secret and nothing of another tenant.
 */
export function refusedMpp(
  problem: MppProblem,
  message: string,
  members: Readonly<Record<string, unknown>> = {},
): Error {
  return fail('payment-verification-failed', { reason: problem, message, ...members })
}
