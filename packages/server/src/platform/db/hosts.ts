/** The kind of PostgreSQL server that a process requires: `any`, or one that accepts writes. */
type ServerNeed = 'any' | 'read-write'

/** The servers that a database address names, in the order in which they are tried. */
export interface ParsedAddress {
  /** One address per server, each with a single host. */
  readonly urls: readonly string[]
  readonly need: ServerNeed
}

const needs: Readonly<Record<string, ServerNeed>> = {
  any: 'any',
  'read-write': 'read-write',
  primary: 'read-write',
}

/**
 * Reads a PostgreSQL address as libpq does: several hosts are separated by commas, before the path or in `host` and `port`, and
 * `target_session_attrs` is `any`, `read-write` or `primary`. With several hosts the default is `read-write`, since nothing works without
 * writes. Returns a sentence without any part of the address if the address is invalid.
 *
 * @example
 * parseAddress('postgres://purser@db-1:5432,db-2:5432/purser')
 * // { urls: ['postgres://purser@db-1:5432/purser', 'postgres://purser@db-2:5432/purser'], need: 'read-write' }
 */
export function parseAddress(address: string): ParsedAddress | { readonly fault: string } {
  const parts = /^(postgres(?:ql)?:\/\/)((?:[^/?]*@)?)([^/?]*)(\/[^?]*)?(?:\?(.*))?$/.exec(address)
  if (parts === null) return { fault: 'it must begin with postgres:// or postgresql://' }
  const [, scheme = '', user = '', authority = '', path = '', query = ''] = parts
  const parameters = query.split('&').filter((parameter) => parameter !== '')
  const parameterOf = (name: string): string | undefined =>
    parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1)
  const hosts =
    authority === '' ? hostsOfParameters(parameterOf('host'), parameterOf('port')) : hostsOfAuthority(authority)
  if ('fault' in hosts) return hosts
  const named = parameterOf('target_session_attrs')
  const need = named === undefined ? (hosts.length > 1 ? 'read-write' : 'any') : needs[named]
  if (need === undefined) return { fault: 'target_session_attrs must be any, read-write or primary' }
  const kept = parameters.filter((parameter) => !parameter.startsWith('target_session_attrs='))
  const others = kept.filter((parameter) => !/^(host|port)=/.test(parameter))
  const common = { scheme, user, path }
  if (hosts.length < 2) return { urls: [join({ ...common, authority, parameters: kept })], need }
  const urls = hosts.map(({ host, port, isParameter }) =>
    isParameter
      ? join({
          ...common,
          authority: '',
          parameters: [...others, `host=${host}`, ...(port === '' ? [] : [`port=${port}`])],
        })
      : join({ ...common, authority: port === '' ? host : `${host}:${port}`, parameters: others }),
  )
  return { urls, need }
}

interface Host {
  readonly host: string
  readonly port: string
  readonly isParameter: boolean
}

function hostsOfAuthority(authority: string): Host[] | { readonly fault: string } {
  const hosts = authority.split(',').map((one) => /^(\[[^\]]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(one))
  if (!hosts.every((host) => host !== null))
    return { fault: 'each host must be a name or an address, with a port or without' }
  return hosts.map(([, host = '', port = '']) => ({ host, port, isParameter: false }))
}

/** One port serves all hosts, as in libpq. */
function hostsOfParameters(hosts = '', ports = ''): Host[] | { readonly fault: string } {
  const names = decodeURIComponent(hosts).split(',')
  const numbers = decodeURIComponent(ports).split(',')
  if (numbers.length > 1 && numbers.length !== names.length) return { fault: 'it names more ports than hosts' }
  return names.map((name, index) => ({
    host: encodeURIComponent(name),
    port: (numbers.length > 1 ? numbers[index] : numbers[0]) ?? '',
    isParameter: true,
  }))
}

interface AddressParts {
  readonly scheme: string
  readonly user: string
  readonly authority: string
  readonly path: string
  readonly parameters: readonly string[]
}

function join({ scheme, user, authority, path, parameters }: AddressParts): string {
  return `${scheme}${user}${authority}${path}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`
}
