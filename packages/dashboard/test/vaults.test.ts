import { expect, test } from 'vitest'
import { whyNotReady } from '../src/pages/transfers/transfer-form.tsx'
import { previewBytesMax, previewKind } from '../src/pages/vaults/preview-kind.ts'
import { payloadText } from '../src/pages/vaults/vault-stream.tsx'
import { byteSize } from '../src/ui/format.ts'

test('a file of a vault that could hold a script is never handed to the browser as a document or a picture', () => {
  const kinds = ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/xml; charset=utf-8', 'TEXT/HTML']
  expect(kinds.map((mimeType) => previewKind({ mimeType, size: 10 }))).toEqual(kinds.map(() => 'text'))
  expect(previewKind({ mimeType: 'application/pdf', size: 10 })).toBe('none')
  expect(previewKind({ mimeType: 'image/png', size: 10 })).toBe('image')
  expect(previewKind({ mimeType: 'image/png', size: previewBytesMax + 1 })).toBe('too-large')
})

test('the stream of a vault shortens hashes, wherever they stand in a payload', () => {
  const sha256 = `ab12${'0'.repeat(56)}cd34`
  expect(payloadText({ vaultId: 'vlt_1', name: 'page.html', sha256 })).toBe(
    '{ "name": "page.html", "sha256": "ab12…cd34" }',
  )
})

test('sizes are shown in steps of a thousand', () => {
  expect([0, 999, 1_500, 1_000_000, 24_300_000].map(byteSize)).toEqual(['0 B', '999 B', '1.5 KB', '1 MB', '24.3 MB'])
})

test('a transfer is not quoted while the amount is zero or the address is cut', () => {
  const draft = {
    walletId: 'mwt_1',
    token: 'USDC',
    amount: '0.01',
    toAddress: `0x${'a'.repeat(40)}`,
    toChain: 'base',
    toToken: 'USDC',
    reference: '',
  }
  expect(whyNotReady(draft)).toBeUndefined()
  expect(whyNotReady({ ...draft, amount: '0.00' })).toBe('Write an amount above zero.')
  expect(whyNotReady({ ...draft, toAddress: `0x${'a'.repeat(39)}` })).toBe('Write the address of the recipient.')
})
