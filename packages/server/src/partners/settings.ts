import type { ConfigFault } from '../platform/config-fault.ts'
import type { PartnerSettings } from './partner-request.ts'

/** The environment variables, and the list to which their faults are added. */
export interface SettingsReader {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly faults: ConfigFault[]
}

/** The variables `<name>_API_KEY` and `<name>_API_URL`, with the default of the second. */
interface KeyedApi {
  readonly name: string
  readonly baseUrl: string
}

/**
 * Returns the account at a partner with an API key; undefined without a key: the partner is then unavailable. A URL without its key is a
 * fault, since the operator believes that the partner is enabled.
 */
export function readKeyedApi(reader: SettingsReader, { name, baseUrl }: KeyedApi): PartnerSettings | undefined {
  const [keyName, urlName] = [`${name}_API_KEY`, `${name}_API_URL`]
  const apiKey = reader.env[keyName] ?? ''
  const url = readUrl(reader, { name: urlName, baseUrl })
  if (apiKey === '') {
    if ((reader.env[urlName] ?? '') !== '') reader.faults.push(withoutKey(urlName, { keyName }))
    return undefined
  }
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    reader.faults.push({
      name: keyName,
      fault: 'is not usable',
      how: 'set it to the key as the partner issued it, without spaces',
    })
  return { apiKey, baseUrl: url }
}

/** Returns a URL without a trailing slash, or the default. */
export function readUrl({ env, faults }: SettingsReader, { name, baseUrl }: KeyedApi): string {
  const url = env[name] || baseUrl
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    faults.push({ name, fault: 'is not usable', how: `set it to an address, or leave it out for ${baseUrl}` })
  return url.replace(/\/+$/, '')
}

/** The fault of a setting that has no effect without the partner's key. */
export function withoutKey(name: string, { keyName }: { readonly keyName: string }): ConfigFault {
  return { name, fault: `is set, and ${keyName} is not`, how: `set ${keyName} too, or leave both out` }
}
