import { expect, test } from 'vitest'
import { parseCustomerUrl, type UrlRefusal, urlLengthMax } from './customer-url.ts'

const refused: readonly (readonly [string, UrlRefusal])[] = [
  ['', 'url-malformed'],
  ['hooks.example.com/in', 'url-malformed'],
  ['//hooks.example.com/in', 'url-malformed'],
  ['https:hooks.example.com', 'url-malformed'],
  ['https://', 'url-malformed'],
  ['https://hooks.example.com:99999/', 'url-malformed'],
  ['https://hooks.example.com\\@127.0.0.1/', 'url-malformed'],
  ['https://hooks.exam ple.com/', 'url-malformed'],
  [' https://hooks.example.com/', 'url-malformed'],
  ['https://hooks.example.com/\r\nx-evil: 1', 'url-malformed'],
  ['https://hooks.exam\tple.com/', 'url-malformed'],
  ['https://[fe80::1%25eth0]/', 'url-malformed'],
  [`https://hooks.example.com/${'a'.repeat(urlLengthMax)}`, 'url-too-long'],
  ['http://hooks.example.com/in', 'scheme-refused'],
  ['ftp://hooks.example.com/in', 'scheme-refused'],
  ['file:///etc/passwd', 'scheme-refused'],
  ['gopher://127.0.0.1:25/', 'scheme-refused'],
  ['javascript:alert(1)', 'scheme-refused'],
  ['data:text/plain,x', 'scheme-refused'],
  ['https://user:secret@hooks.example.com/', 'credentials-refused'],
  ['https://user@hooks.example.com/', 'credentials-refused'],
  ['https://@hooks.example.com/', 'credentials-refused'],
  ['https://:@hooks.example.com/', 'credentials-refused'],
  ['https://hooks.example.com:22/', 'port-refused'],
  ['https://hooks.example.com:25/', 'port-refused'],
  ['https://hooks.example.com:6379/', 'port-refused'],
  ['https://localhost/', 'host-refused'],
  ['https://LOCALHOST/', 'host-refused'],
  ['https://localhost./', 'host-refused'],
  ['https://a.localhost/', 'host-refused'],
  ['https://postgres/', 'host-refused'],
  ['https://printer.local/', 'host-refused'],
  ['https://metadata.google.internal/', 'host-refused'],
  ['https://hooks.example.com./', 'host-refused'],
  ['https://nas.home.arpa/', 'host-refused'],
  ['https://127.0.0.1/', 'address-refused'],
  ['https://127.1/', 'address-refused'],
  ['https://2130706433/', 'address-refused'],
  ['https://0x7f000001/', 'address-refused'],
  ['https://0x7f.1/', 'address-refused'],
  ['https://0177.0.0.1/', 'address-refused'],
  ['https://%31%32%37.0.0.1/', 'address-refused'],
  ['https://１２７.0.0.1/', 'address-refused'],
  ['https://127。0。0。1/', 'address-refused'],
  ['https://127.0.0.1./', 'address-refused'],
  ['https://0/', 'address-refused'],
  ['https://169.254.169.254/latest/meta-data', 'address-refused'],
  ['https://[::1]/', 'address-refused'],
  ['https://[::]/', 'address-refused'],
  ['https://[::ffff:127.0.0.1]/', 'address-refused'],
  ['https://[0:0:0:0:0:ffff:7f00:1]/', 'address-refused'],
  ['https://[64:ff9b::7f00:1]/', 'address-refused'],
  ['https://[2002:7f00:1::]/', 'address-refused'],
  ['https://[fd00:ec2::254]/', 'address-refused'],
  ['https://[fe80::1]/', 'address-refused'],
]

test.each(refused)('%j is refused: %s', (text, refusal) => {
  expect(parseCustomerUrl(text, { reach: 'public' })).toBe(refusal)
})

test.each([
  'https://hooks.example.com',
  'HTTPS://Hooks.Example.com/in?a=b#c',
  'https://hooks.example.com:443/in',
  'https://hooks.example.com:8443/in',
  'https://bücher.example/in',
  'https://8.8.8.8/in',
  'https://[2606:4700:4700::1111]/in',
  'https://hooks.example.com/~a@b:c/d',
  'https://localhost.example.com/',
  'https://internal.example.com/',
])('%s may be requested', (text) => {
  expect(parseCustomerUrl(text, { reach: 'public' })).toEqual(new URL(text))
})

test.each([
  'http://localhost:3000/hook',
  'http://127.0.0.1:3000/hook',
  'http://[::1]:3000/hook',
  'https://10.0.0.7/hook',
  'http://receiver:8000/hook',
  'http://hooks.example.com/hook',
  'http://8.8.8.8:3000/hook',
])('%s may be requested if private networks are open', (text) => {
  expect(parseCustomerUrl(text, { reach: 'public-and-private' })).toEqual(new URL(text))
  expect(parseCustomerUrl(text, { reach: 'public' })).toBeTypeOf('string')
})

test.each([
  ['http://169.254.169.254/', 'address-refused'],
  ['http://[fd00:ec2::254]/', 'address-refused'],
  ['http://0.0.0.0:3000/', 'address-refused'],
  ['http://[ff02::1]/', 'address-refused'],
  ['http://user:secret@localhost:3000/', 'credentials-refused'],
  ['ftp://localhost/', 'scheme-refused'],
])('%s stays refused if private networks are open', (text, refusal) => {
  expect(parseCustomerUrl(text, { reach: 'public-and-private' })).toBe(refusal)
})

test.each(['https://rpc.example.com/v2', 'https://RPC.EXAMPLE.COM:8443/', 'https://[2606:4700:4700::1111]/in'])(
  '%s is refused where it is a server of the deployment',
  (text) => {
    const ownHosts = new Set(['rpc.example.com', '2606:4700:4700::1111'])
    expect(parseCustomerUrl(text, { reach: 'public', ownHosts })).toBe('host-refused')
    expect(parseCustomerUrl('https://shop.rpc.example.com/', { reach: 'public', ownHosts })).toBeInstanceOf(URL)
  },
)
