import { parseApiKey } from '@purser/protocol'
import { createPurser, type Purser } from '@purser/sdk'
import { type Asked, CannotDo, type Option, type Outside } from './command.ts'
import { type Credentials, readCredentials } from './credentials.ts'

/** The options of every command that asks the service. */
export const serviceOptions = {
  key: { value: '<api key>', about: 'in place of PURSER_API_KEY, and of the key that purser login keeps' },
  'base-url': {
    value: '<url>',
    about: 'where the service is, in place of PURSER_BASE_URL and of that of purser login',
  },
} as const satisfies Record<string, Option>

/** Which service is asked, with which key. */
export interface Service extends Credentials {
  readonly environment: 'test' | 'live'
  readonly purser: Purser
}

/**
 * The service that a command asks: flags go before the environment, and that before what `purser login` kept. The kept key goes to the
 * service that it was kept for and to no other, whatever address is named beside it.
 */
export async function serviceOf(asked: Pick<Asked, 'options'>, outside: Outside): Promise<Service> {
  const { key, baseUrl } = given(asked, outside)
  if (key !== undefined && baseUrl !== undefined) return connect({ apiKey: key, baseUrl }, outside)
  const kept = await readCredentials(outside.settingsDirectory)
  if (kept === undefined) throw new CannotDo(whatIsMissing(key, baseUrl))
  if (key !== undefined) return connect({ apiKey: key, baseUrl: addressOf(kept.baseUrl) }, outside)
  if (baseUrl !== undefined && baseUrl !== kept.baseUrl)
    throw new CannotDo(`The key that is kept is for ${kept.baseUrl} and goes nowhere else. Give a key for ${baseUrl}.`)
  return connect(kept, outside)
}

/** What flags and environment say, the flags first. */
export function given(
  { options }: Pick<Asked, 'options'>,
  { env }: Pick<Outside, 'env'>,
): { readonly key: string | undefined; readonly baseUrl: string | undefined } {
  const address = options['base-url'] ?? (env.PURSER_BASE_URL || undefined)
  return {
    key: options.key ?? (env.PURSER_API_KEY || undefined),
    baseUrl: address === undefined ? undefined : addressOf(address),
  }
}

/** A client for these. Throws a `CannotDo` for a key that was mistyped. */
export function connect({ apiKey, baseUrl }: Credentials, { fetch }: Pick<Outside, 'fetch'>): Service {
  const environment = parseApiKey(apiKey)?.environment
  if (environment === undefined) throw new CannotDo('The key is none: part of it is missing or mistyped.')
  return { apiKey, baseUrl, environment, purser: createPurser({ apiKey, baseUrl, fetch }) }
}

/** A key as it may be shown: enough to tell it from others. */
export function shownKey(apiKey: string): string {
  return `${apiKey.split('_').slice(0, 3).join('_')}_…${apiKey.slice(-4)}`
}

/** A key is sent there, so nobody on the way may read it: https, or this machine. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isLocal = url !== undefined && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)
  if (
    url === undefined ||
    !isSafe ||
    url.username !== '' ||
    url.password !== '' ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new CannotDo(`${text} is no address of a service: https://…, or http:// on this machine.`)
  return url.origin + url.pathname.replace(/\/+$/, '')
}

function whatIsMissing(key: string | undefined, baseUrl: string | undefined): string {
  if (key !== undefined) return 'Which service? Give --base-url or PURSER_BASE_URL, or log in with purser login.'
  if (baseUrl !== undefined) return 'With which key? Give --key or PURSER_API_KEY, or log in with purser login.'
  return 'Nobody is logged in. Run purser login, or set PURSER_BASE_URL and PURSER_API_KEY.'
}
