import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from './ports.ts'

const pollMsMin = 500
const pollMsMax = 60_000

/**
 * Next poll time of a state that a chain or a partner decides. The interval is an eighth of the time since it began, so that polls become
 * rarer with age; half a second if it began just now or has not begun.
 */
export function nextPollTime({ clock }: Pick<Ctx, 'clock'>, began: Date | null): Date {
  const now = clock.now().getTime()
  const takenMs = now - (began?.getTime() ?? now)
  return instantOf(now + Math.min(pollMsMax, Math.max(pollMsMin, takenMs / 8)))
}
