import type { Purser } from '@purser/sdk'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Dev } from '../../devnet/src/dev.ts'
import { foundOrganisation, upsertAccount } from '../../server/src/features/organisations/index.ts'
import { makeSignInLink } from '../../server/src/features/people/index.ts'
import { sql } from '../../server/src/platform/db/db.ts'
import { newId } from '../../server/src/platform/ids.ts'
import type { Watched } from './browser.ts'
import type { Lent, StorageState } from './contexts.ts'
import { openLink, show, signedInBy } from './stage.ts'

export interface Stage {
  readonly dev: () => Dev
  /** The client of the first test key. */
  readonly purserOf: () => Purser
  readonly browser: () => Browser
  readonly open: (
    options: Lent & { readonly storageState?: StorageState; readonly isAlone?: boolean },
    work: (page: Page, seen: Watched, context: BrowserContext) => Promise<void>,
  ) => Promise<void>
}

/**
 * Gives the pages of a context a security key that says yes to everything, as CDP's WebAuthn domain does. Returns what
 * decides whether it recognizes its person.
 */
async function withAuthenticator(
  page: Page,
  context: BrowserContext,
): Promise<(isUserVerified: boolean) => Promise<void>> {
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return async (isUserVerified) => {
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
  }
}

/** Signs in as a page does that asks the authenticator for no verification of its person; answers the status. */
const signInUnverified = `(async () => {
  const options = await (await fetch('/auth/passkey/generate-authenticate-options')).json()
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON({ ...options, userVerification: 'discouraged' })
  const credential = await navigator.credentials.get({ publicKey })
  const body = JSON.stringify({ response: credential.toJSON() })
  const headers = { 'content-type': 'application/json' }
  return (await fetch('/auth/passkey/verify-authentication', { method: 'POST', headers, body })).status
})()`

/** People and their organisation, in the browser. */
export function peopleScenarios({ dev, purserOf, browser, open }: Stage): void {
  const signedIn = (email: string) => signedInBy({ dev, browser }, email)

  test('a passkey is added, named, signs in, and signs in no more once it is removed', async () => {
    await open({}, async (page, { faults }, context) => {
      const setVerified = await withAuthenticator(page, context)
      await page.goto(`${dev().dashboardUrl}/test/account`)
      await page.getByText('No passkeys yet').waitFor()
      const sessions = page.getByRole('list', { name: 'Sessions' }).getByRole('listitem')
      await sessions.first().waitFor()
      const sessionsBefore = await sessions.count()
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await page.getByRole('dialog').getByLabel('Name').fill('Laptop <b>of Ann</b>')
      await page.getByRole('dialog').getByRole('button', { name: 'Add the passkey' }).click()
      await page.getByText('Laptop <b>of Ann</b>').waitFor()
      await page.getByRole('button', { name: 'Rename Laptop' }).click()
      await page.getByRole('dialog').getByLabel('Name').fill('Laptop')
      await page.keyboard.press('Enter')
      await page.getByText('Laptop', { exact: true }).waitFor()
      expect(faults).toEqual([])

      await context.clearCookies()
      await page.goto(`${dev().dashboardUrl}/test/account`)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await page.waitForURL(`${dev().dashboardUrl}/test/account`)
      await expect.poll(() => sessions.count()).toBe(sessionsBefore + 1)
      await setVerified(false)
      expect(await page.evaluate(signInUnverified)).toBe(403)
      await page.getByRole('button', { name: 'Remove Laptop' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove the passkey' }).click()
      await page.getByText('No passkeys yet').waitFor()

      await setVerified(true)
      await context.clearCookies()
      await page.goto(`${dev().dashboardUrl}/sign-in`)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('not known here')
    })
  })

  test('a password is chosen by a link, which works once; a failure that is not of the link leaves it usable', async () => {
    const { server, baseUrl } = dev()
    const { deps } = server
    const email = 'pat@example.com'
    const invited = await purserOf().organisations.members.add({ email, role: 'viewer' })
    const signInUrl = await makeSignInLink(deps, deps.db, { email, baseUrl })
    await open({ storageState: { cookies: [], origins: [] } }, async (page) => {
      await openLink(page, signInUrl)
      await page.getByText('You are not a member of any organisation').waitFor()
    })
    const token = 'a-token-of-a-link-by-email'
    await deps.db.run(
      sql`insert into auth.verification (id, identifier, value, "expiresAt")
          select 'ver-test', ${`reset-password:${token}`}, id, now() + interval '1 hour' from auth."user" where email = ${email}`,
    )
    await open({ storageState: { cookies: [], origins: [] } }, async (page) => {
      const password = 'a sentence that is long enough'
      const chooseWith = async (used: string) => {
        await page.goto(`${dev().dashboardUrl}/choose-password?token=${used}`)
        await page.getByLabel('New password').fill(password)
        await page.getByRole('button', { name: 'Choose this password' }).click()
      }
      await page.route('**/auth/reset-password', (route) => route.fulfill({ status: 429, body: '{}' }), { times: 1 })
      await chooseWith(token)
      await page.getByRole('alert').getByText('Wait a moment').waitFor()
      expect(page.url()).not.toContain(token)
      await page.getByRole('button', { name: 'Choose this password' }).click()
      await page.getByText('Your password is set.').waitFor()
      await page.getByRole('link', { name: 'Sign in' }).click()
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText('You are not a member of any organisation').waitFor()
      await chooseWith(token)
      await page.getByText('This link was used already').waitFor()
    })
    await purserOf().organisations.members.remove(invited.accountId)
  })

  test('the sign-in page offers the issuers of the deployment, leads to them, and says what they refused', async () => {
    await open({ storageState: { cookies: [], origins: [] } }, async (page) => {
      const json = (body: unknown) => ({ contentType: 'application/json', body: JSON.stringify(body) })
      const { dashboardUrl, baseUrl } = dev()
      await page.route('**/auth/methods', (route) => route.fulfill(json({ emailLink: false, oidc: ['corp'] })))
      const bodies: unknown[] = []
      await page.route('**/auth/sign-in/social', async (route) => {
        bodies.push(route.request().postDataJSON())
        await route.fulfill(json({ url: `${dashboardUrl}/sign-in?error=email_not_verified`, redirect: true }))
      })
      await page.goto(`${dashboardUrl}/sign-in?to=%2Fdashboard%2Ftest%2Fteam`)
      await page.getByRole('button', { name: 'Sign in with Corp' }).click()
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('the issuer must have verified it')
      expect(bodies).toEqual([
        {
          provider: 'corp',
          callbackURL: `${baseUrl}/dashboard/test/team`,
          errorCallbackURL: `${dashboardUrl}/sign-in`,
        },
      ])
    })
  })

  test('a session of another browser is listed and ended, and that browser is signed out', async () => {
    await open({ storageState: await signedIn('dev@example.com') }, async (other) => {
      await other.goto(`${dev().dashboardUrl}/test/team`)
      await other.getByRole('heading', { level: 1, name: 'Team' }).waitFor()
      await open({}, async (page, { faults }) => {
        await page.goto(`${dev().dashboardUrl}/test/account`)
        const sessions = page.getByRole('list', { name: 'Sessions' }).getByRole('listitem')
        await sessions.nth(1).waitFor()
        const ends = page.getByRole('main').getByRole('button', { name: /^Sign out/ })
        while ((await ends.count()) > 0) {
          const before = await sessions.count()
          await ends.first().click()
          await expect.poll(() => sessions.count()).toBeLessThan(before)
        }
        await page.getByText('This browser').waitFor()
        expect(faults).toEqual([])
      })
      await other.reload()
      await other.waitForURL(/\/dashboard\/sign-in\?/)
    })
  })

  test('a person is invited, joins by their own page, gets another role, and is removed', async () => {
    const email = 'ann@example.com'
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/team`)
      await page.getByRole('button', { name: 'Invite', exact: true }).click()
      await page.getByRole('dialog').getByLabel('Email').fill(email)
      await page.getByRole('dialog').getByLabel('Viewer').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Invite as viewer' }).click()
      const row = page.getByRole('row').filter({ hasText: email })
      await row.getByText('Invited').waitFor()
      await open({ storageState: await signedIn(email) }, async (invited, seen) => {
        await invited.goto(`${dev().dashboardUrl}/test`)
        await invited.getByText('You are not a member of any organisation').waitFor()
        await invited.getByRole('button', { name: 'Join as viewer' }).click()
        await invited.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
        await show(invited, `${dev().dashboardUrl}/test/team`)
        await invited.getByRole('row').filter({ hasText: email }).getByText('You').waitFor()
        expect(await invited.getByRole('button', { name: /^(Invite|Change the role|Remove)/ }).count()).toBe(0)
        expect(seen.faults).toEqual([])
      })
      await page.reload()
      await row.getByText('Active').waitFor()
      await row.getByRole('button', { name: `Change the role of ${email}` }).click()
      await page.getByRole('dialog').getByLabel('Member').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Make member' }).click()
      await row.getByText('Member', { exact: true }).waitFor()
      await row.getByRole('button', { name: `Remove ${email}` }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
      await row.waitFor({ state: 'detached' })
      expect(faults).toEqual([])
    })
  })

  /** An organisation on the hobby plan, of which this person is the owner. */
  const foundedBy = (email: string, name: string) => {
    const { deps } = dev().server
    return deps.db.tx(async (tx) => {
      const [now, acting] = [
        deps.clock.now(),
        { ...deps, actor: { kind: 'operator' }, requestId: newId('req', deps) } as const,
      ]
      const person = { id: newId('acc', deps), email, name: null, acceptedAt: now, createdAt: now }
      const owner = await upsertAccount(tx, person)
      const founding = { name, type: 'team', plan: 'hobby', ownerId: owner.id, environments: ['test'] } as const
      return (await foundOrganisation(acting, tx, founding)).organisation
    })
  }

  test('an owner deletes the organisation once its name is typed and nothing prevents it, and then works in the other one', async () => {
    const email = 'leaver@example.com'
    await foundedBy(email, 'Kept')
    const { id } = await foundedBy(email, 'Gone & away')
    const { deps } = dev().server
    const storageState = await signedIn(email)
    await open({ storageState }, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test/settings`)
      await page.getByRole('button', { name: 'Delete Gone & away' }).click()
      const dialog = page.getByRole('dialog')
      const end = dialog.getByRole('button', { name: 'Delete the organisation' })
      await dialog.getByLabel('Type “Gone & away” to confirm').fill('Gone')
      expect(await end.isDisabled()).toBe(true)
      await dialog.getByLabel('Type “Gone & away” to confirm').fill('Gone & away')
      await deps.db.run(sql`
        insert into sessions (id, organisation_id, environment, payment_id, vault_id, expires_at, created_at)
        values ('sess_of_the_leaver', ${id}, 'live', 'pay_of_the_leaver', 'vlt_of_the_leaver', now() + interval '1 hour', now())`)
      await end.click()
      await dialog.getByText('The organisation has 1 paid session that is valid. Nothing was changed.').waitFor()
      await deps.db.run(sql`update sessions set expires_at = now() where organisation_id = ${id}`)
      await end.click()
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
      await page.goto(`${dev().dashboardUrl}/test/settings`)
      await page.getByText('You are an owner of Kept.').waitFor()
    })
  })

  test('who deletes their last organisation creates another one, sees its first key once, and works in it', async () => {
    const email = 'again@example.com'
    await foundedBy(email, 'Last')
    await open({ storageState: await signedIn(email), isAlone: true }, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/settings`)
      await page.getByRole('button', { name: 'Delete Last' }).click()
      await page.getByRole('dialog').getByLabel('Type “Last” to confirm').fill('Last')
      await page.getByRole('dialog').getByRole('button', { name: 'Delete the organisation' }).click()
      await page.getByText('You are not a member of any organisation').waitFor()
      const make = page.getByRole('button', { name: 'Create the organisation' })
      expect(await make.isDisabled()).toBe(true)
      await page.getByLabel('Name').fill('Next one')
      await make.click()
      await page.getByText('This key is shown once. Copy it now.').waitFor()
      // The person comes back from another window, after what the page has read is old.
      await page.clock.setSystemTime(Date.now() + 120_000)
      const requested: string[] = []
      page.on('request', (one) => requested.push(new URL(one.url()).pathname))
      await page.evaluate(() => {
        window.dispatchEvent(new Event('visibilitychange'))
        return fetch('/healthz')
      })
      expect(requested).toEqual(['/healthz'])
      const key = String(await page.getByRole('status').locator('code').first().textContent()).trim()
      const response = await fetch(`${dev().baseUrl}/organisations/current`, {
        headers: { authorization: `Bearer ${key}` },
      })
      expect(await response.json()).toMatchObject({ name: 'Next one', plan: 'hobby' })
      await page.getByRole('button', { name: 'Open the organisation' }).click()
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
      await page.goto(`${dev().dashboardUrl}/test/settings`)
      await page.getByText('You are an owner of Next one.').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('the upgrade address of a limit leads to the plan, its limits and the command that changes it', async () => {
    const email = 'founder@example.com'
    const organisation = await foundedBy(email, 'Own')
    await open({ storageState: await signedIn(email) }, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/settings/billing`)
      await page.getByRole('heading', { level: 1, name: 'Hobby plan' }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/dashboard/test/settings/billing')
      await page.getByText(`set-plan --organisation ${organisation.id} --plan pro`).waitFor()
      await page.getByRole('row', { name: 'Storage of all vaults 500 MB' }).waitFor()
      await page.getByRole('link', { name: 'Usage and plan' }).click()
      await page.getByText('0 of 100').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('the audit log is filtered, opened and verified in the browser; a changed record is found there', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/audit-log?action=organisations.create`)
      await page.getByRole('row').filter({ hasText: 'organisations.create' }).waitFor()
      expect(await page.getByRole('row').filter({ hasNotText: 'organisations.create' }).count()).toBe(1)
      await page.getByRole('row').filter({ hasText: 'organisations.create' }).click()
      await page.getByRole('dialog').getByText('Previous hash').waitFor()
      await page.keyboard.press('Escape')
      await page.getByLabel('Action', { exact: true }).fill('nothing.of.this.name')
      await page.keyboard.press('Enter')
      await page.getByText('No record matches these filters').waitFor()
      await page.getByRole('button', { name: 'Verify the chain' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Verify' }).click()
      await dialog.getByText(/records verified, from the first to the newest/).waitFor()
      await page.route('**/organisations/current/audit-log?*', async (route) => {
        const response = await route.fetch()
        const body = (await response.text()).replace('"organisations.create"', '"organisations.update"')
        await route.fulfill({ response: response, body })
      })
      await dialog.getByRole('button', { name: 'Verify' }).click()
      await dialog.getByText('Record 1 was changed').waitFor()
      await dialog.getByLabel('A hash that you stored').fill('xyz')
      await dialog.getByText('A hash has 64 digits').waitFor()
      expect(faults).toEqual([])
    })
  })
}
