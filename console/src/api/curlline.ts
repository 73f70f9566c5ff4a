// CurlRequest is what a curl line asks for.
export interface CurlRequest {
  method: string
  url: string
  headers: string[]
}

const withValue = new Set(['-o', '--output', '-m', '--max-time', '--connect-timeout', '--resolve', '--cacert', '--cert', '--key', '-w', '--write-out', '-x', '--proxy', '-F', '--form', '-T', '--upload-file', '--retry'])

// parseCurl reads a line as a shell would split it; undefined if it is no curl line with a URL.
export function parseCurl(line: string): CurlRequest | undefined {
  const words = split(line.trim().replace(/^\$\s+/, '').replace(/\\\r?\n/g, ' '))
  if (words[0] !== 'curl' || words.length < 2) return undefined
  let method = ''
  let url = ''
  const headers: string[] = []
  let body = false
  for (let i = 1; i < words.length; i++) {
    let word = words[i]
    let value = (): string => words[++i] ?? ''
    const joined = /^(--[a-z-]+)=(.*)$/s.exec(word)
    if (joined) {
      word = joined[1]
      value = () => joined[2]
    } else if (/^-[XHAebud]./.test(word)) {
      const rest = word.slice(2)
      word = word.slice(0, 2)
      value = () => rest
    }
    if (word === '-X' || word === '--request') method = value()
    else if (word === '-H' || word === '--header') headers.push(value().replace(/:\s*/, ': '))
    else if (word === '-A' || word === '--user-agent') headers.push(`user-agent: ${value()}`)
    else if (word === '-e' || word === '--referer') headers.push(`referer: ${value()}`)
    else if (word === '-b' || word === '--cookie') headers.push(`cookie: ${value()}`)
    else if (word === '-u' || word === '--user') headers.push(`authorization: Basic ${btoa(value())}`)
    else if (/^(-d|--data.*|--json)$/.test(word)) {
      value()
      body = true
    } else if (word === '-I' || word === '--head') method = 'HEAD'
    else if (word === '--url') url = value()
    else if (withValue.has(word)) value()
    else if (!word.startsWith('-') && !url) url = word
  }
  if (!url) return undefined
  if (!/^[a-z]+:\/\//i.test(url)) url = `http://${url}`
  return { method: method || (body ? 'POST' : 'GET'), url, headers }
}

function split(line: string): string[] {
  const words: string[] = []
  for (const m of line.matchAll(/(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/g)) {
    words.push(
      m[0].replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g, (_, single?: string, double?: string, escaped?: string) => single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? ''),
    )
  }
  return words
}
