import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Stage } from './people-scenarios.ts'
import { openReceiver } from './receiver.ts'

/** Runs a command of the palette. What is typed before its field has the focus is lost, so it waits for that. */
async function act(page: Page, words: string): Promise<void> {
  await page.getByRole('combobox', { name: 'Search pages and actions' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Control+k')
  await page.locator('[role="combobox"]:focus').waitFor()
  await page.keyboard.type(words)
  await page.keyboard.press('Enter')
}

/** What people do from the command palette, and what they find out before they act. */
export function actScenarios({ dev, purserOf, open }: Stage): void {
  test('the command palette pays, opens the sheets of other sections over the page, and changes the theme', async () => {
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/team`)
      await page.getByRole('heading', { level: 1, name: 'Team' }).waitFor()
      await act(page, 'test payment')
      await page.getByText('Test payment of 0.01 USDC made').waitFor()
      for (const [words, title] of [
        ['create an api', 'Create a test key'],
        ['create a wallet', 'Create a wallet'],
        ['webhook endpoint', 'Add an endpoint'],
        ['send money', 'Send money'],
      ] as const) {
        await act(page, words)
        const sheet = page.getByRole('dialog', { name: title })
        await sheet.waitFor()
        await page.keyboard.press('Escape')
        // A notice of what was done is a dialog too, and stays for a while.
        await sheet.waitFor({ state: 'detached' })
      }
      await page.getByRole('heading', { level: 1, name: 'Team' }).waitFor()
      await act(page, 'dark theme')
      await page.locator('html.dark').waitFor()
      await act(page, 'light theme')
      await page.locator('html:not(.dark)').waitFor()
      await act(page, 'create a vault')
      await page
        .getByRole('dialog', { name: 'Create a vault' })
        .getByRole('button', { name: 'Create the vault' })
        .click()
      await page.waitForURL(/\/vaults\/vlt_/)
      await page.getByRole('dialog', { name: 'Create a vault' }).waitFor({ state: 'detached' })
      expect(faults).toEqual([])
    })
  })

  test('a policy answers whether a movement would pass, by its rules and by what has left already', async () => {
    const purser = purserOf()
    const { id } = await purser.wallets.master.create({ chain: 'base', name: 'Tested', supportedTokens: ['USDC'] })
    await purser.test.deposits.create({ walletId: id, token: 'USDC', amount: '50' })
    await purser.test.deposits.create({ walletId: id, token: 'ETH', amount: '0.01' })
    const recipient = '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0'
    await purser.wallets.master.policy.set(id, {
      operations: { transfer: { recipients: [recipient] } },
      tokens: { USDC: { perTransaction: '40', perDay: '45', approvalAbove: '20' } },
    })
    const body = {
      fromWalletId: id,
      fromToken: 'USDC',
      toAddress: recipient,
      toChain: 'base',
      toToken: 'USDC',
      amount: '12',
    } as const
    // Not before the deposits are booked and screened.
    await expect.poll(() => purser.transfers.quote(body).then(() => 'quoted', String)).toBe('quoted')
    await open({}, async (page, { faults }) => {
      await page.goto(`${dev().dashboardUrl}/test/wallets/${id}`)
      await page.getByText('Would a movement pass?').click()
      await page.getByLabel('To the address').fill('0x036CbD53842c5426634e7929541eC2318f3dCF7e')
      await page.getByLabel('Amount').fill('30')
      await page.getByText('No: 0x036C…CF7e is not an allowed recipient of transfers.').waitFor()
      await page.getByLabel('To the address').fill(recipient)
      await page.getByText('It waits for an approval: it is above 20 USDC.').waitFor()
      await page.getByLabel('Amount').fill('05')
      await page.getByText('Write an amount above zero.').waitFor()
      await page.getByLabel('Amount').fill('41')
      await page.getByText('No: at most 40 USDC may leave per transaction.').waitFor()
      await page.getByLabel('Amount').fill('12')
      await page.getByText('Yes: no rule refuses it. It leaves 33 USDC per day.').waitFor()
      await page.getByRole('button', { name: 'Check against what has left already' }).click()
      await page.getByText('Yes: the caps allow it after what has left').waitFor()
      await page.getByRole('button', { name: 'Change the policy' }).click()
      const sheet = page.getByRole('dialog')
      await sheet.getByLabel('Per transaction').fill('10')
      await sheet.getByLabel('To the address').fill(recipient)
      await sheet.getByLabel('Amount', { exact: true }).fill('12')
      await sheet.getByText('No: at most 10 USDC may leave per transaction.').waitFor()
      expect(faults).toEqual([])
    })
  })

  test('an attempt shows the headers that were sent, and its signature is verified here with the secret that was just shown', async () => {
    const received: { id: string; timestamp: string; signature: string; body: string }[] = []
    const receiver = await openReceiver((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { headers } = request
        received.push({
          id: String(headers['webhook-id']),
          timestamp: String(headers['webhook-timestamp']),
          signature: String(headers['webhook-signature']),
          body: Buffer.concat(chunks).toString('utf8'),
        })
        response.end('fine')
      })
    })
    try {
      await open({}, async (page, { faults }) => {
        await page.goto(`${dev().dashboardUrl}/test/webhooks`)
        await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
        await act(page, 'webhook endpoint')
        const sheet = page.getByRole('dialog')
        await sheet.getByLabel('Address').fill(`http://${receiver.host}/signed`)
        await sheet.getByRole('button', { name: 'Add the endpoint' }).click()
        await sheet.getByRole('button', { name: 'I saved the secret' }).click()
        await page.waitForURL(/\/webhooks\/wh_/)
        await page.getByRole('button', { name: 'Send a test event' }).click()
        await page.getByRole('row').filter({ hasText: 'webhook.test' }).first().click()
        const [sent] = received
        if (sent === undefined) throw new Error('nothing was delivered')
        const attempt = page.getByRole('dialog')
        await attempt.getByText(`webhook-timestamp: ${sent.timestamp}`).waitFor()
        await attempt.getByText(`webhook-id: ${sent.id}`).waitFor()
        const body = attempt.getByLabel('Raw body that your endpoint received')
        expect(await body.inputValue()).toBe(sent.body)
        const verify = attempt.getByRole('button', { name: 'Verify in this browser' })
        await attempt.getByLabel('webhook-signature that your endpoint received').fill(sent.signature)
        await verify.click()
        await attempt.getByText('Authentic: this secret signed this body').waitFor()
        await body.fill(sent.body.replaceAll(' ', ''))
        await verify.click()
        await attempt.getByText('No signature matches this body.').waitFor()
        await attempt.getByLabel('Secret of the endpoint').fill('not a secret')
        await verify.click()
        await attempt.getByText('not a webhook secret').waitFor()
        expect(faults).toEqual([])
      })
    } finally {
      receiver.close()
    }
  })
}
