import type { Config } from './config.ts'
import type { KeySource } from './custody/index.ts'
import type { PartnerAccounts } from './partners/index.ts'
import { hostOf } from './platform/customer-url.ts'
import { parseAddress } from './platform/db/hosts.ts'

type Configured = Pick<
  Config,
  | 'databaseUrl'
  | 'databaseDirectUrl'
  | 'files'
  | 'witness'
  | 'keyEncryption'
  | 'keyEncryptionAlso'
  | 'partners'
  | 'rpcUrls'
  | 'sanctionsListUrl'
  | 'signIn'
>

/**
 * Hosts of the servers that the configuration names for the service itself: nodes, partners, storages, databases, key services, the mail server and
 * the sanctions list. They may admit the service by its network address, so no URL of a customer may lead there.
 */
export function ownHosts(config: Configured): ReadonlySet<string> {
  const { databaseUrl, databaseDirectUrl, files, witness, sanctionsListUrl, signIn } = config
  const partners = Object.values<PartnerAccounts[keyof PartnerAccounts]>(config.partners ?? {})
  const databases = [databaseUrl, databaseDirectUrl ?? ''].flatMap((address) => {
    const parsed = parseAddress(address)
    return 'fault' in parsed ? [] : parsed.urls
  })
  const urls = [
    ...Object.values(config.rpcUrls).flat(),
    ...partners.flatMap((account) => (account !== undefined && 'baseUrl' in account ? [account.baseUrl] : [])),
    ...databases,
    ...[config.keyEncryption, ...(config.keyEncryptionAlso ?? [])].map(endpointOf),
    signIn?.smtp?.url,
    sanctionsListUrl,
  ]
  return new Set([...urls.flatMap(hostsIn), ...storageHosts(files), ...storageHosts(witness)])
}

/** A bucket of S3 is also a host of its own, beside a path of its endpoint. */
function storageHosts(storage: Config['files'] | undefined): readonly string[] {
  if (storage === undefined || !('s3' in storage)) return []
  const { endpoint, bucket } = storage.s3
  return hostsIn(endpoint).flatMap((host) => [host, `${bucket.toLowerCase()}.${host}`])
}

function endpointOf(source: KeySource): string | undefined {
  if ('awsKms' in source) return source.awsKms.endpoint
  return 'gcpKms' in source ? source.gcpKms.endpoint : undefined
}

/** The host of an address, and the one that an address of PostgreSQL names as a parameter. A path of a socket is no host. */
function hostsIn(address: string | undefined): readonly string[] {
  if (address === undefined || !URL.canParse(address)) return []
  const url = new URL(address)
  const hosts = [hostOf(url), url.searchParams.get('host') ?? '']
  return hosts.filter((host) => host !== '' && !host.includes('/')).map((host) => host.toLowerCase())
}
