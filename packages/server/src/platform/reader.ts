import { type Ctx, callerId, type Environment } from './ctx.ts'
import { type ApiKeyId, type Id, isId, type OrganisationId } from './ids.ts'

/** The credential under which a response stays open: an API key, a person's session in an organisation and environment, or a vault token. */
export type Reader = ApiKeyId | SessionReader | Id<'vat'>

type SessionReader = `${Id<'ssn'>}@${OrganisationId}/${Environment}`

/** Returns those of these readers that have lost access: revoked keys and tokens, ended sessions, and sessions of removed members. */
export type EndedReaders = (readers: readonly Reader[]) => Promise<readonly Reader[]>

/** The reader of a call; undefined for a guest without a vault token. */
function readerOf({ actor, person, tenant }: Pick<Ctx, 'actor' | 'person' | 'tenant'>): Reader | undefined {
  if (person !== undefined) return readerOfSession({ sessionId: person.sessionId, ...tenant })
  if (actor.kind === 'guest' && isId('vat', actor.guestId)) return actor.guestId
  return actor.kind === 'api-key' ? actor.apiKeyId : undefined
}

/** Returns the reader of a call. Throws for other guests, which the operation must not admit. */
export function requireReader(ctx: Pick<Ctx, 'actor' | 'person' | 'tenant'>): Reader {
  const reader = readerOf(ctx)
  if (reader === undefined) throw new Error(`${callerId(ctx.actor)} is not a reader`)
  return reader
}

/** Creates `EndedReaders` from one query each for keys, tokens and sessions. */
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
