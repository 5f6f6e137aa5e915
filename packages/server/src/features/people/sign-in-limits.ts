import { addressBlock, addressSite } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { failPlatform } from '../../platform/errors.ts'
import { createLimiter, type Limiter, type RateLimit } from '../../platform/http/limits.ts'
import type { Semaphore } from '../../platform/semaphores.ts'
import { type KnownBrowserCookie, knownBrowserOf, personOfBrowser } from './known-browser.ts'
import type { SignInPath } from './sign-in-paths.ts'

/** Attempts of one network address, and, for known browsers, of one person; and what one network address begins. */
const sourceLimit: RateLimit = { perSecond: 1 / 2, burst: 30 }
/**
 * As `sourceLimit`, of a /56 of IPv6: one customer of a provider may have all of its 256 blocks, and each would have a limit of its own. A /24 of
 * IPv4 may be those of many customers.
 */
const customerLimit: RateLimit = { perSecond: 5, burst: 300 }
/** As `customerLimit`, of a /48 of IPv6, which may be that of one customer or of 256. */
const siteLimit: RateLimit = { perSecond: 50, burst: 3_000 }
/**
 * Password attempts of one network address with one e-mail address: a fifth of the rate of all unknown browsers, so that one address cannot use that
 * up.
 */
const pairLimit: RateLimit = { perSecond: 1 / 300, burst: 10 }
/** Password attempts of all unknown browsers with one e-mail address. It limits how fast a password can be guessed from many network addresses. */
const unknownBrowsersLimit: RateLimit = { perSecond: 1 / 60, burst: 20 }
/** Changes of one person. */
const changesLimit: RateLimit = { perSecond: 1 / 60, burst: 60 }
/** Attempts of a browser in which somebody signed in with the e-mail address before. */
const knownLimit: RateLimit = { perSecond: 1 / 60, burst: 10 }

interface SignInAttempt {
  readonly path: SignInPath
  /** Network address of the caller. */
  readonly address: string
  readonly cookies: string | undefined
  /** The account of the caller's session, where the path changes something. */
  readonly accountId: string | undefined
  /** The body as parsed. */
  readonly sent: unknown
}

/** Counts an attempt to sign in. Throws 429 beyond a limit. Returns the queues that the attempt waits in. */
export type SignInLimit = (attempt: SignInAttempt) => readonly Semaphore[]

/** Most hashes of passwords at once: one of the process's four threads is left for its files. */
const unknownBrowsersAtOnce = 2
const knownAtOnce = 1

/** The queue of known browsers. */
const passwords: Semaphore = { name: 'passwords', widthMax: knownAtOnce }

/**
 * Returns the queues in which an attempt waits for its password hash. Unknown browsers of one site (a /24 or a /48) hash one password at a time,
 * so that others are served between them. All unknown browsers leave one thread to known browsers and to signed-in people who change their
 * password, each one at a time. A password reset counts as unknown, because its token may be invalid.
 */
function queuesForUnknown({ path, address, accountId }: SignInAttempt): readonly Semaphore[] {
  if (accountId !== undefined && path.counts) return [{ name: `passkeys of ${accountId}`, widthMax: 1 }]
  if (!path.hashes) return []
  if (accountId !== undefined) return [{ name: `password of ${accountId}`, widthMax: 1 }, passwords]
  return [
    { name: `passwords of unknown browsers at ${addressSite(address)}`, widthMax: 1 },
    { name: 'passwords of unknown browsers', widthMax: unknownBrowsersAtOnce },
  ]
}

/**
 * The limits of one process. An unknown browser can use up neither the limit of known browsers nor, from one network address, that of other unknown
 * browsers: otherwise a request a minute would lock a person out. Requests for mail have no limit of their e-mail address, which strangers from many
 * network addresses would use up.
 */
export function createSignInLimit(clock: Clock, browser: KnownBrowserCookie): SignInLimit {
  const ofSource = createLimiter(sourceLimit, clock)
  const ofBeginnings = createLimiter(sourceLimit, clock)
  const admitAtSite = createSiteLimit(clock, browser)
  const beginAtSite = createSiteLimit(clock, browser)
  const ofPair = createLimiter(pairLimit, clock)
  const ofUnknownBrowsers = createLimiter(unknownBrowsersLimit, clock)
  const ofKnown = createLimiter(knownLimit, clock)
  const ofChanges = createLimiter(changesLimit, clock)
  return (attempt) => {
    const { path, address, cookies, accountId, sent } = attempt
    const source = addressBlock(address)
    if (path.begins) {
      admit(ofBeginnings(source))
      beginAtSite(attempt)
    }
    if (accountId !== undefined && path.changes) admit(ofChanges(accountId))
    const { attempts: kind } = path
    if (kind === undefined) return queuesForUnknown(attempt)
    const email = emailOf(sent)
    const known = kind === 'proof' || email === undefined ? undefined : knownBrowserOf(cookies, email, browser)
    // In order: a refusal by one limit takes no tokens from the next.
    admit(ofSource(known === undefined ? source : `person ${email}`))
    if (known !== undefined) {
      admit(ofKnown(`${kind} ${known}`))
      return path.hashes ? [passwords] : []
    }
    admitAtSite(attempt)
    if (kind === 'password' && email !== undefined) {
      admit(ofPair(`${source} ${email}`))
      admit(ofUnknownBrowsers(email))
    }
    return queuesForUnknown(attempt)
  }
}

/**
 * Returns the limit of what the blocks of IPv6 that one customer may have do together; throws 429 beyond it. The blocks may also be those of several
 * customers, so that a few attempts of each person from browsers in which they signed in before do not count. They are not counted by browser: whoever has
 * an account makes another browser known with each sign-in.
 */
function createSiteLimit(
  clock: Clock,
  browser: KnownBrowserCookie,
): (attempt: Pick<SignInAttempt, 'address' | 'cookies'>) => void {
  const ofCustomers = createLimiter(customerLimit, clock)
  const ofSites = createLimiter(siteLimit, clock)
  const ofKnown = createLimiter(knownLimit, clock)
  return ({ address, cookies }) => {
    const block = addressBlock(address)
    if (!block.includes(':')) return
    const person = personOfBrowser(cookies, browser)
    if (person !== undefined && ofKnown(person).admitted) return
    admit(ofCustomers(customerOf(block)))
    admit(ofSites(addressSite(address)))
  }
}

/** Returns a name of the /56 of a /64. */
function customerOf(block: string): string {
  const [first, second, third, fourth = ''] = block.split(':')
  return `${first}:${second}:${third}:${Number.parseInt(fourth, 16) >> 8}`
}

function admit({ admitted, resetSeconds }: ReturnType<Limiter>): void {
  if (!admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
}

function emailOf(sent: unknown): string | undefined {
  return typeof sent === 'object' && sent !== null && 'email' in sent ? String(sent.email).toLowerCase() : undefined
}
