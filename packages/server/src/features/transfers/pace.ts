import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'

const lookMsMin = 500
const lookMsMax = 60_000

/**
 * When to look again at what others decide: a chain, a partner, a block to come. An eighth of the time that it has taken since it began, so
 * that it is asked the seldomer the longer it takes; what began just now, or has not begun, after half a second.
 */
export function nextLook({ clock }: Pick<Ctx, 'clock'>, began: Date | null): Date {
  const now = clock.now().getTime()
  const takenMs = now - (began?.getTime() ?? now)
  return instantOf(now + Math.min(lookMsMax, Math.max(lookMsMin, takenMs / 8)))
}
