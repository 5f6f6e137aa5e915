import { lookup, Resolver } from 'node:dns/promises'

/** All current addresses of a name, as text, IPv4 first. Rejects, or returns none, if there is none. */
export type NameLookup = (name: string) => Promise<readonly string[]>

const attemptMsMax = 2_000
const attemptsMax = 2

/**
 * Queries the name servers directly. The hosts file and search domains are ignored, so that no short name leads into the deployment's own
 * networks. No thread waits, so that slow name servers of one customer do not delay other look-ups (the system's own look-up has four
 * threads for the whole process). `servers` replaces the machine's name servers: addresses with or without a port.
 */
export function createPublicLookup(servers?: readonly string[]): NameLookup {
  const resolver = new Resolver({ timeout: attemptMsMax, tries: attemptsMax })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  }
}

/** Resolves as other programs of the machine do, including the hosts file: for development, where receivers are called `localhost`. */
export const systemLookup: NameLookup = async (name) => {
  const found = await lookup(name, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}
