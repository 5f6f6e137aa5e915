import { addressSite } from '@purser/protocol'
import { createLimiter, type RateLimit } from '../../platform/http/limits.ts'
import type { SignInDeps } from './sign-in-options.ts'

/** Requests for mails to addresses without an account from one site (a /24 or a /48). */
const siteLimit: RateLimit = { perSecond: 60 / 3_600, burst: 60 }
/** Such mails of all sites: each is to somebody who may not have requested it, and mail servers refuse a sender of many. */
const processLimit: RateLimit = { perSecond: 1_000 / 3_600, burst: 2_000 }
const warnMs = 600_000

/** The limits of mails to addresses without an account, where anybody may sign up. */
export interface StrangerMails {
  /** Counts a request of a caller, and returns whether it may have a mail sent. */
  mayRequest(address: string): boolean
  /** Counts a mail that is about to be sent, and returns whether it may be. */
  maySend(): boolean
}

/**
 * Creates the limits, which are those of one process. Whoever has an account or an invitation gets mails beyond them. Requests that send no mail, because
 * the mailbox has one, take nothing from the limit of all sites.
 */
export function limitStrangerMails({ clock, log }: Pick<SignInDeps, 'clock' | 'log'>): StrangerMails {
  const ofSite = createLimiter(siteLimit, clock)
  const ofProcess = createLimiter(processLimit, clock)
  let warnedAt = Number.NEGATIVE_INFINITY
  const refuse = (): false => {
    const now = clock.now().getTime()
    if (now - warnedAt >= warnMs) {
      warnedAt = now
      log.warn({}, 'sign-in links to new addresses are not sent, because too many were requested')
    }
    return false
  }
  return {
    mayRequest: (address) => ofSite(addressSite(address)).admitted && (ofProcess('all', 0).remaining > 0 || refuse()),
    maySend: () => ofProcess('all').admitted || refuse(),
  }
}
