import { addressSite } from '@purser/protocol'
import { createLimiter, type RateLimit } from '../../platform/http/limits.ts'
import type { SignInDeps } from './sign-in-options.ts'

/** Mails to addresses without an account that one site (a /24 or a /48) has sent. */
const siteLimit: RateLimit = { perSecond: 60 / 3_600, burst: 60 }
/** Such mails of all sites: each is to somebody who may not have requested it, and mail servers refuse a sender of many. */
const processLimit: RateLimit = { perSecond: 1_000 / 3_600, burst: 2_000 }
const warnMs = 600_000

/**
 * Returns whether a caller may have one more mail sent to an address without an account, where anybody may sign up. The limits are those of one
 * process. Whoever has an account or an invitation gets mails beyond them.
 */
export function limitStrangerMails({ clock, log }: Pick<SignInDeps, 'clock' | 'log'>): (address: string) => boolean {
  const ofSite = createLimiter(siteLimit, clock)
  const ofProcess = createLimiter(processLimit, clock)
  let warnedAt = Number.NEGATIVE_INFINITY
  return (address) => {
    // In order: a site beyond its limit takes nothing from the others.
    if (!ofSite(addressSite(address)).admitted) return false
    const { admitted } = ofProcess('all')
    const now = clock.now().getTime()
    if (!admitted && now - warnedAt >= warnMs) {
      warnedAt = now
      log.warn({}, 'sign-in links to new addresses are not sent, because too many were requested')
    }
    return admitted
  }
}
