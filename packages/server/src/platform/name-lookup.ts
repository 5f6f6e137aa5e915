import { lookup, Resolver } from 'node:dns/promises'

/** Every address that a name has now, as text, IPv4 first. Rejects, or answers none, where there is none. */
export type NameLookup = (name: string) => Promise<readonly string[]>

const attemptMsMax = 2_000
const attemptsMax = 2

/**
 * Asks the name servers themselves. Names in the hosts file and search domains do not count, so that no short name leads into the
 * deployment's own networks; and no thread waits, so that the servers of one customer's name, answering late or never, hold up
 * nobody else's look-up (the system's own look-up has four threads for the whole process). `servers` are other name servers than
 * the machine's own, as addresses with or without a port.
 */
export function createPublicLookup(servers?: readonly string[]): NameLookup {
  const resolver = new Resolver({ timeout: attemptMsMax, tries: attemptsMax })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  }
}

/** Asks as every other program of the machine does, hosts file included: for development, where receivers are called `localhost`. */
export const systemLookup: NameLookup = async (name) => {
  const found = await lookup(name, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}
