import { expect, test } from 'vitest'
import { attachmentOf, readFileName, readMimeType } from './name.ts'

const long = 'ä'.repeat(255)

test.each([
  ['report.pdf', 'report.pdf'],
  ['/etc/passwd', 'passwd'],
  ['../../../etc/passwd', 'passwd'],
  ['C:\\Windows\\System32\\cmd.exe', 'cmd.exe'],
  ['a/b\\c.txt', 'c.txt'],
  [' spaced name.txt ', 'spaced name.txt'],
  ['Zürich 東京 \u{1f4c4}.txt', 'Zürich 東京 \u{1f4c4}.txt'],
  ['Zu\u0308rich', 'Zürich'],
  ['fdp.\u202eexe.txt', 'fdp.\u202eexe.txt'],
  ['half \ud800 pair', 'half \ufffd pair'],
  ['.hidden', '.hidden'],
  ['...', '...'],
  ['CON', 'CON'],
  ['"; rm -rf ~; echo ".txt', '"; rm -rf ~; echo ".txt'],
  [long, long],
  ['\u{1f4c4}'.repeat(255), '\u{1f4c4}'.repeat(255)],
])('a file sent as %j is called %j', (given, name) => {
  expect(readFileName(given)).toEqual({ name })
})

test.each([
  [undefined, 'is missing'],
  ['', 'is missing'],
  ['   ', 'is missing'],
  ['.', 'is missing'],
  ['..', 'is missing'],
  ['a/..', 'is missing'],
  ['directory/', 'is missing'],
  ['a\u0000.txt', 'holds control characters'],
  ['a\r\nSet-Cookie: b', 'holds control characters'],
  ['a\u0085b', 'holds control characters'],
  ['a\u007fb', 'holds control characters'],
  ['\u0000/a.txt', 'holds control characters'],
  [`${long}ä`, 'is longer than 255 characters'],
  ['x'.repeat(10_000), 'is longer than 255 characters'],
])('a file sent as %j is refused: its name %s', (given, fault) => {
  expect(readFileName(given)).toEqual({ fault })
})

test('every accepted name becomes a header of one line of ASCII that encodes the same name', () => {
  for (const name of [
    'plain.txt',
    '"quoted" \\ %41.txt',
    'Zürich 東京 \u{1f4c4}.txt',
    '\u2764\ufe0f.png',
    "it's (1)*.txt",
    long,
  ]) {
    const header = attachmentOf(name)
    expect(header).toMatch(/^attachment; filename="[\x20-\x7e]*"; filename\*=UTF-8''[A-Za-z0-9%._~!-]*$/)
    expect(/filename="([^"\\]*)"/.exec(header)?.[1]).toBeDefined()
    expect(decodeURIComponent(header.split("UTF-8''")[1] ?? '')).toBe(name)
  }
})

test('the name that a browser saves has no bidirectional control characters', () => {
  const header = attachmentOf('a\u202eb\u2066c\u200fd\u061ce\u2069f.exe')
  expect(decodeURIComponent(header.split("UTF-8''")[1] ?? '')).toBe('abcdef.exe')
  expect(header).toContain('filename="abcdef.exe"')
})

test.each([
  ['text/plain', 'text/plain'],
  ['Text/HTML; charset=utf-8', 'text/html'],
  ['application/vnd.api+json', 'application/vnd.api+json'],
  [undefined, 'application/octet-stream'],
  ['', 'application/octet-stream'],
  ['text', 'application/octet-stream'],
  ['text/plain\r\nx: y', 'application/octet-stream'],
  [`${'a'.repeat(100)}/b`, 'application/octet-stream'],
  ['тип/текст', 'application/octet-stream'],
])('a part of type %j is a file of type %j', (given, type) => {
  expect(readMimeType(given)).toBe(type)
})
