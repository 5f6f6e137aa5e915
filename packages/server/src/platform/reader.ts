import { type Ctx, callerId, type Environment } from './ctx.ts'
import { type ApiKeyId, type Id, isId, type OrganisationId } from './ids.ts'

/** By whose right an answer stays open: an API key, a person's session in an organisation and environment, or a vault's token. */
export type Reader = ApiKeyId | SessionReader | Id<'vat'>

type SessionReader = `${Id<'ssn'>}@${OrganisationId}/${Environment}`

/** Which of these readers may not read any more: keys and tokens that were revoked, sessions that ended, members who were removed. */
export type EndedReaders = (readers: readonly Reader[]) => Promise<readonly Reader[]>

/** The reader that a call is of; undefined for a guest with something else than a token. */
function readerOf({ actor, person, tenant }: Pick<Ctx, 'actor' | 'person' | 'tenant'>): Reader | undefined {
  if (person !== undefined) return readerOfSession({ sessionId: person.sessionId, ...tenant })
  if (actor.kind === 'guest' && isId('vat', actor.guestId)) return actor.guestId
  return actor.kind === 'api-key' ? actor.apiKeyId : undefined
}

/** For operations that take no other guests. */
export function requireReader(ctx: Pick<Ctx, 'actor' | 'person' | 'tenant'>): Reader {
  const reader = readerOf(ctx)
  if (reader === undefined) throw new Error(`${callerId(ctx.actor)} reads nothing`)
  return reader
}

/** Finds out who of them ended, keys, tokens and sessions each in one look. */
export function endedReaders(looks: {
  readonly keys: (apiKeyIds: readonly ApiKeyId[]) => Promise<readonly ApiKeyId[]>
  readonly tokens: (ids: readonly Id<'vat'>[]) => Promise<readonly Id<'vat'>[]>
  readonly sessions: (sessions: readonly SessionInOrganisation[]) => Promise<readonly SessionInOrganisation[]>
}): EndedReaders {
  return async (readers) => {
    const sessions = readers.filter(isSession)
    const tokens = readers.filter((reader) => isId('vat', reader))
    const keys = readers.filter((reader) => isId('key', reader))
    const [endedKeys, endedTokens, endedSessions] = await Promise.all([
      keys.length === 0 ? [] : looks.keys(keys),
      tokens.length === 0 ? [] : looks.tokens(tokens),
      sessions.length === 0 ? [] : looks.sessions(sessions.map(sessionOf)),
    ])
    return [...endedKeys, ...endedTokens, ...endedSessions.map(readerOfSession)]
  }
}

export interface SessionInOrganisation {
  readonly sessionId: Id<'ssn'>
  readonly organisationId: OrganisationId
  /** A person may work in the test environment alone. */
  readonly environment: Environment
}

function readerOfSession({ sessionId, organisationId, environment }: SessionInOrganisation): SessionReader {
  return `${sessionId}@${organisationId}/${environment}`
}

function isSession(reader: Reader): reader is SessionReader {
  return reader.includes('@')
}

function sessionOf(reader: SessionReader): SessionInOrganisation {
  const [sessionId, organisationId, environment] = reader.split(/[@/]/) as [Id<'ssn'>, OrganisationId, Environment]
  return { sessionId, organisationId, environment }
}
