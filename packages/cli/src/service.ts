import { isConfidential, parseApiKey } from '@purser/protocol'
import { createPurser, type Purser } from '@purser/sdk'
import { type Args, CommandError, type Io, type Option } from './command.ts'
import { type Credentials, readCredentials } from './credentials.ts'

/** The options of every command that calls the service. */
export const serviceOptions = {
  key: { value: '<api key>', about: 'overrides PURSER_API_KEY and the key stored by purser login' },
  'base-url': {
    value: '<url>',
    about: 'the service; overrides PURSER_BASE_URL and the address stored by purser login',
  },
} as const satisfies Record<string, Option>

/** The service that a command calls, with the key it uses. */
export interface Service extends Credentials {
  readonly environment: 'test' | 'live'
  readonly purser: Purser
}

/**
 * The service that a command calls. Flags override the environment, which overrides what `purser login` stored. The
 * stored key is only ever sent to the service that it was stored for, even if the flags name another address.
 */
export async function serviceOf(args: Pick<Args, 'options'>, io: Io): Promise<Service> {
  const { key, baseUrl } = given(args, io)
  if (key !== undefined && baseUrl !== undefined) return connect({ apiKey: key, baseUrl }, io)
  const kept = await readCredentials(io.settingsDirectory)
  if (kept === undefined) throw new CommandError(whatIsMissing(key, baseUrl))
  if (key !== undefined) return connect({ apiKey: key, baseUrl: addressOf(kept.baseUrl) }, io)
  if (baseUrl !== undefined && baseUrl !== kept.baseUrl)
    throw new CommandError(
      `The stored key is for ${kept.baseUrl} and is not sent anywhere else. Give a key for ${baseUrl}.`,
    )
  return connect(kept, io)
}

/** The address of the service: that of the environment, or the one that `purser login` stored. */
export async function serviceAddress(io: Io): Promise<string> {
  const { baseUrl } = given({ options: {} }, io)
  if (baseUrl !== undefined) return baseUrl
  const kept = await readCredentials(io.settingsDirectory)
  if (kept === undefined) throw new CommandError('No service address. Set PURSER_BASE_URL, or run purser login.')
  return addressOf(kept.baseUrl)
}

/** API key and base URL from flags and environment; flags take precedence. */
export function given(
  { options }: Pick<Args, 'options'>,
  { env }: Pick<Io, 'env'>,
): { readonly key: string | undefined; readonly baseUrl: string | undefined } {
  const address = options['base-url'] ?? (env.PURSER_BASE_URL || undefined)
  return {
    key: options.key ?? (env.PURSER_API_KEY || undefined),
    baseUrl: address === undefined ? undefined : addressOf(address),
  }
}

/** A client for these credentials. Throws a `CommandError` for a malformed key. */
export function connect({ apiKey, baseUrl }: Credentials, { fetch }: Pick<Io, 'fetch'>): Service {
  const environment = parseApiKey(apiKey)?.environment
  if (environment === undefined) throw new CommandError('This is not an API key. Part of it is missing or mistyped.')
  return { apiKey, baseUrl, environment, purser: createPurser({ apiKey, baseUrl, fetch }) }
}

/** A key shortened for display: prefix and last four characters. */
export function shownKey(apiKey: string): string {
  return `${apiKey.split('_').slice(0, 3).join('_')}_…${apiKey.slice(-4)}`
}

/** Accepts https, or http on this machine, because the key is sent to this address. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !isConfidential(url) ||
    url.username !== '' ||
    url.password !== '' ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new CommandError(`${text} is not a service URL. Use https://…, or http:// on this machine.`)
  return url.origin + url.pathname.replace(/\/+$/, '')
}

function whatIsMissing(key: string | undefined, baseUrl: string | undefined): string {
  if (key !== undefined) return 'No service address. Give --base-url or PURSER_BASE_URL, or run purser login.'
  if (baseUrl !== undefined) return 'No API key. Give --key or PURSER_API_KEY, or run purser login.'
  return 'Not logged in. Run purser login, or set PURSER_BASE_URL and PURSER_API_KEY.'
}
