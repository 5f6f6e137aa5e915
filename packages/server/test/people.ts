import { z } from 'zod'
import { sessionCookieOf } from '../src/features/people/cookie.ts'
import { makeSignInLink } from '../src/features/people/index.ts'
import { sql } from '../src/platform/db/db.ts'
import type { OrganisationId } from '../src/platform/ids.ts'
import { type Answer, parseAnswer, type World } from './world.ts'

/** A browser that is signed in: it sends its cookie and the dashboard's origin with every call. */
export interface Browser {
  readonly cookie: string
  call(method: string, path: string, body?: unknown, headers?: Record<string, string | undefined>): Promise<Answer>
}

/** A new one-time link for an address. */
export function aLink(world: World, email: string): Promise<string> {
  return makeSignInLink(world.server.deps, world.database.db, { email, baseUrl: world.base })
}

/** Opens an address as a browser does, without following where it leads. */
export function open(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { redirect: 'manual', headers })
}

/** Presses the button of the page that a link shows, in a browser that did not request the link. */
export function press(world: World, link: string, headers: Record<string, string> = {}): Promise<Response> {
  const { origin } = new URL(world.config.baseUrl)
  return fetch(link, { method: 'POST', redirect: 'manual', headers: { origin, ...headers } })
}

/** `name=value` of the session's cookie that an answer sets; undefined where it sets none. */
export function sessionCookie(world: World, response: Response): string | undefined {
  const name = sessionCookieOf(world.config.baseUrl)
  const set = response.headers.getSetCookie().find((cookie) => cookie.startsWith(`${name}=`))
  return set?.split(';')[0]
}

/** Signs in with a new link. Calls name the organisation, in the test environment, unless their headers say otherwise. */
export async function aBrowser(
  world: World,
  { email, organisationId, base = world.base }: { email: string; organisationId?: OrganisationId; base?: string },
): Promise<Browser> {
  const cookie = sessionCookie(world, await press(world, await aLink(world, email)))
  if (cookie === undefined) throw new Error('the link did not sign in')
  return browserOf(world, { cookie, organisationId, base })
}

export function browserOf(
  world: World,
  {
    cookie,
    organisationId,
    base = world.base,
  }: { cookie: string; organisationId?: OrganisationId | undefined; base?: string },
): Browser {
  return {
    cookie,
    async call(method, path, body, headers = {}) {
      const all: Record<string, string | undefined> = {
        cookie,
        origin: new URL(world.config.dashboardUrl).origin,
        'x-service-organisation': organisationId,
        'x-service-environment': 'test',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      }
      const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
      const init = body === undefined ? {} : { body: JSON.stringify(body) }
      return parseAnswer(await fetch(base + path, { method, headers: Object.fromEntries(sent), ...init }))
    },
  }
}

/** The address of an organisation's owner. */
export async function ownerOf(world: World, organisationId: OrganisationId): Promise<string> {
  const { email } = await world.database.db.one(
    z.object({ email: z.string() }),
    sql`select email from accounts join members on account_id = id where organisation_id = ${organisationId} and role = 'owner'`,
  )
  return email
}

/** Invites a new person and accepts for them: a browser of theirs. */
export async function invite(
  world: World,
  {
    owner,
    organisationId,
    email,
    role,
  }: { owner: Browser; organisationId: OrganisationId; email: string; role: string },
): Promise<Browser> {
  const invited = await owner.call('POST', '/organisations/current/members', { email, role })
  if (invited.status !== 201) throw new Error(`not invited: ${JSON.stringify(invited.body)}`)
  const browser = await aBrowser(world, { email, organisationId })
  const outside = { 'x-service-organisation': undefined }
  const accepted = await browser.call('POST', `/account/invitations/${organisationId}/accept`, undefined, outside)
  if (accepted.status !== 204) throw new Error(`not accepted: ${JSON.stringify(accepted.body)}`)
  return browser
}

/** Moves the start of every session back by this time. */
export function ageSessions(world: World, minutes: number): Promise<number> {
  return world.database.db.run(
    sql`update auth."session" set "createdAt" = now() - make_interval(mins => ${minutes}) where "createdAt" > now() - make_interval(mins => ${minutes})`,
  )
}
