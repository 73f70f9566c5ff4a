// A page of another origin tries to write with the session of a browser, and to put the console into a frame.
import { assert, base, field, flow, go, made, open, press, revision, see, settled } from './lib.mjs'

await flow(async (step) => {
  const page = await open()
  await field(page, 'Token').fill(process.env.TOKEN)
  await press(page, 'Sign in')
  await settled(page)
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '192.0.2.1', upstream_port: 80 })
  const before = await revision()

  for (const foreign of [process.env.CONTROL, process.env.CONTROL.replace('127.0.0.1', 'localhost')]) {
    step(`a page of ${foreign} posts`)
    const evil = await page.context().newPage()
    await evil.goto(foreign)
    const statuses = await evil.evaluate(async (base) => {
      const tries = []
      for (const headers of [{}, { 'Content-Type': 'application/json' }, { 'Gatehouse-Session': 'ghs_' }]) {
        for (const [method, path] of [['POST', 'proxy'], ['DELETE', 'upstream/blue'], ['DELETE', 'ui/session']]) {
          tries.push(fetch(base + path, { method, headers, credentials: 'include', body: method === 'POST' ? 'Name=evil' : undefined }).then((r) => r.status, () => 0))
          tries.push(fetch(base + path, { method, headers, credentials: 'include', mode: 'no-cors', body: method === 'POST' ? 'Name=evil' : undefined }).then((r) => r.status, () => 0))
        }
      }
      return Promise.all(tries)
    }, base)
    assert.ok(statuses.every((s) => s === 0), `it reads nothing: ${statuses}`)
    await evil.evaluate((base) => {
      const form = document.body.appendChild(document.createElement('form'))
      form.method = 'post'
      form.action = `${base}proxy`
      form.innerHTML = '<input name="Name" value="evil">'
      form.submit()
    }, base)
    await evil.waitForURL(/proxy$/)
    assert.match(await evil.content(), /forbidden_origin|unauthorized/)
    assert.equal(await revision(), before)

    step(`a page of ${foreign} frames the console`)
    await evil.goto(foreign)
    await evil.evaluate((base) => {
      const frame = document.body.appendChild(document.createElement('iframe'))
      frame.src = `${base}ui/`
      return new Promise((done) => frame.addEventListener('load', done))
    }, base)
    const inside = evil.frames().find((f) => f !== evil.mainFrame())
    assert.equal(await inside.locator('#root').count(), 0)
    assert.match(inside.url(), /^chrome-error:/)
    await evil.close()
  }
  step('the session is as it was')
  await go(page, '/upstream/blue')
  await see(page, '192.0.2.1')
})
