import { createPurser } from '@purser/sdk'
import { expect, test } from 'vitest'
import { makeSignInLink } from '../../server/src/features/people/index.ts'
import type { Stage } from './people-scenarios.ts'
import { openLink, show, signedInBy } from './stage.ts'

/** What developers do: the first payment, snippets, keys. */
export function developerScenarios({ dev, browser, open }: Stage): void {
  test('from the sign-in link a newcomer makes a payment and watches it settle within a minute', async () => {
    const { server, baseUrl, dashboardUrl } = dev()
    const link = await makeSignInLink(server.deps, server.deps.db, { email: 'dev@example.com', baseUrl })
    await open({ storageState: { cookies: [], origins: [] } }, async (page, { faults }) => {
      const startedAt = performance.now()
      await openLink(page, link)
      await page.waitForURL(`${dashboardUrl}/test`)
      await page.getByRole('link', { name: 'Quick start' }).first().click()
      await page.getByRole('heading', { level: 1, name: 'Quick start' }).waitFor()
      await page.getByRole('button', { name: 'Make a test payment' }).click()
      const steps = page.getByRole('region', { name: 'Your first payment' }).getByRole('listitem')
      await steps.filter({ hasText: 'Signed and verified' }).waitFor()
      await steps.filter({ hasText: '0.01 USDC moved to your wallet' }).waitFor()
      expect(performance.now() - startedAt).toBeLessThan(60_000)
      await page.getByRole('link', { name: 'Open the payment' }).click()
      await page.getByRole('heading', { level: 1, name: '0.01 USDC' }).waitFor()
      expect(faults).toEqual([])
    })
  })

  test('the snippets contain the wallet and a key that is made for them, and the key works', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/quick-start`)
      const code = page.locator('pre')
      await expect.poll(() => code.innerText()).toContain(dev().walletId)
      expect(await code.innerText()).not.toMatch(/svc_test_sk_\w{8}/)
      await page.getByRole('button', { name: 'Create a test key' }).click()
      await expect.poll(() => code.innerText()).toMatch(/svc_test_sk_\w{8}/)
      const [apiKey = ''] = /svc_test_sk_\w+/.exec(await code.innerText()) ?? []
      const purser = createPurser({ apiKey, baseUrl: dev().baseUrl })
      expect((await purser.wallets.byo.get(dev().walletId)).id).toBe(dev().walletId)
      for (const name of ['Hono', 'Fastify', 'Next', 'curl', 'MCP']) {
        await page.getByRole('link', { name, exact: true }).click()
        await page.locator(`nav [aria-current="page"]`).filter({ hasText: name }).waitFor()
        expect([name, (await code.innerText()).includes(apiKey)]).toEqual([name, true])
      }
      expect(faults).toEqual([])
    })
  })

  test('a key is made with scopes and an end, shown once, works within them, and is refused once it is revoked', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/keys`)
      await page.getByRole('button', { name: 'Create a test key' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByLabel('Name').fill('Forecast <b>server</b>')
      await sheet.getByLabel('Everything').uncheck()
      await sheet.getByLabel('Take payments').uncheck()
      await sheet.getByLabel('Valid for').selectOption({ label: '30 days' })
      await sheet.getByRole('button', { name: 'Create the key' }).click()
      await sheet.getByText('This key is shown once').waitFor()
      const apiKey = await sheet.locator('pre').innerText()
      await sheet.getByRole('button', { name: 'I saved the key' }).click()
      const row = page.getByRole('row').filter({ hasText: 'Forecast <b>server</b>' })
      await row.getByText('Valid', { exact: true }).waitFor()
      expect(await page.content()).not.toContain(apiKey)

      const purser = createPurser({ apiKey, baseUrl: dev().baseUrl })
      expect((await purser.wallets.byo.get(dev().walletId)).id).toBe(dev().walletId)
      await expect(purser.test.payments.create({ walletId: dev().walletId })).rejects.toMatchObject({
        code: 'scope-not-allowed',
      })
      const [record] = await purser.organisations.apiKeys.list({ limit: 1 }).toArray({ limit: 1 })
      expect(record).toMatchObject({ scopes: ['read'], expiresAt: expect.any(String) })

      await row.getByRole('button', { name: 'Revoke Forecast' }).click()
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Revoke / })
        .click()
      await row.getByText('Revoked', { exact: true }).waitFor()
      await expect(purser.wallets.byo.get(dev().walletId)).rejects.toMatchObject({ status: 401 })
      expect(faults).toEqual([])
    })
  })

  test('a key whose first response was lost is made once, and shown by the next press', async () => {
    await open({}, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test/keys`)
      await page.getByRole('button', { name: 'Create a test key' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByLabel('Name').fill('Lost once')
      await sheet.getByLabel('Valid for').selectOption({ label: '30 days' })
      const create = sheet.getByRole('button', { name: 'Create the key' })
      const bodies: (string | null)[] = []
      let isDown = true
      await page.route(/api-keys$/, async (route) => {
        if (route.request().method() !== 'POST') return route.fallback()
        bodies.push(route.request().postData())
        if (!isDown) return route.fallback()
        if (bodies.length === 1) await route.fetch()
        return route.abort()
      })
      await create.click()
      await sheet.getByRole('alert').waitFor()
      isDown = false
      await create.click()
      await sheet.getByText('This key is shown once').waitFor()
      expect([bodies.length > 1, new Set(bodies).size]).toEqual([true, 1])
      await sheet.getByRole('button', { name: 'I saved the key' }).click()
      await page.getByRole('row').filter({ hasText: 'Lost once' }).waitFor()
      expect(await page.getByRole('row').filter({ hasText: 'Lost once' }).count()).toBe(1)
    })
  })

  test('revoking a key says that a key that it created remains valid', async () => {
    const { apiKey, baseUrl, dashboardUrl } = dev()
    const { apiKeys } = createPurser({ apiKey, baseUrl }).organisations
    const maker = await apiKeys.create({ name: 'Maker', environment: 'test' })
    const makers = createPurser({ apiKey: maker.key, baseUrl }).organisations.apiKeys
    const created = await makers.create({ name: 'Created', environment: 'test' })
    await open({}, async (page, { faults }) => {
      await page.goto(`${dashboardUrl}/test/keys`)
      await page.getByRole('button', { name: 'Revoke Maker' }).click()
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Revoke / })
        .click()
      await page.getByText('1 key that it created remains valid.').waitFor()
      expect(faults).toEqual([])
    })
    await apiKeys.revoke(created.id)
  })

  test('the log shows a request, why it was refused, and what its filters name, and an id leads to it', async () => {
    const purser = createPurser({ apiKey: dev().apiKey, baseUrl: dev().baseUrl })
    const refused = await purser.vaults.get('vlt_01h455vb4pex5vsknk084sn02q').catch((error: unknown) => Object(error))
    expect(refused.code).toBe('vault-not-found')
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/logs?route=%2Fvaults%2F%7Bid%7D`)
      const row = page.getByRole('row').filter({ hasText: '/vaults/{id}' }).first()
      await expect
        .poll(async () => {
          await page.getByRole('button', { name: 'Refresh' }).click()
          return row.filter({ hasText: 'vault-not-found' }).count()
        })
        .toBe(1)
      await page.getByLabel('Status').selectOption({ label: 'Succeeded (2xx)' })
      await page.waitForURL(/status=2xx/)
      await expect.poll(() => page.getByText('vault-not-found').count()).toBe(0)
      await page.goto(`${dev().dashboardUrl}/test/logs?open=${refused.requestId}`)
      const sheet = page.getByRole('dialog')
      await sheet.getByText('vault-not-found').waitFor()
      await sheet.getByText('404').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('a viewer sees the keys, has no button to make or revoke one, and is refused both by the service', async () => {
    const email = 'keys.viewer@example.com'
    const { apiKey, baseUrl, dashboardUrl } = dev()
    await createPurser({ apiKey, baseUrl }).organisations.members.add({ email, role: 'viewer' })
    await open({ storageState: await signedInBy({ dev, browser }, email) }, async (page) => {
      await page.goto(`${dashboardUrl}/test`)
      await page.getByRole('button', { name: 'Join as viewer' }).click()
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
      await show(page, `${dashboardUrl}/test/keys`)
      await page.getByText('Valid', { exact: true }).first().waitFor()
      expect(await page.getByRole('button', { name: /^(Make a|Revoke)/ }).count()).toBe(0)
      const codes = await page.evaluate(async () => {
        const path = '/organisations/current/api-keys'
        const organisation = localStorage.getItem('purser-organisation') ?? ''
        const headers = { 'x-service-organisation': organisation, 'x-service-environment': 'test' }
        const listed: { readonly id: string }[] = await (await fetch(path, { headers })).json()
        const made = await fetch(path, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'x', environment: 'test' }),
        })
        const revoked = await fetch(`${path}/${listed[0]?.id}`, { method: 'DELETE', headers })
        return [listed.length > 0, made.status, revoked.status]
      })
      expect(codes).toEqual([true, 403, 403])
    })
  })
}
