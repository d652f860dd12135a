# Sets up this machine as a real server of a Fairlead load balancer: Windows Server 2016 or newer, as an administrator.
#
#   fairlead-server.ps1           sets it up, over restarts, too; doing it twice does no harm
#   fairlead-server.ps1 verify    changes nothing; says what is missing, and ends with 1 if something is
#   fairlead-server.ps1 undo      takes back what was set up
#
# The machine gets the virtual addresses, so that it takes packets for them and answers from them. It must not
# answer ARP for them: they are on a loopback adapter, and Windows answers only for addresses of the adapter that was
# asked. Only direct routing: Windows takes no packets out of IP-in-IP tunnels.
param([string]$What = 'set-up')
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$server = ''
$direct = ''
$ports = ''

if ($server.Contains(':')) { $family = 'IPv6'; $length = 128 } else { $family = 'IPv4'; $length = 32 }
$name = "Fairlead $family"
$vips = @($direct -split ' ' | Where-Object { $_ })
# What undo has to know: the adapter if it was made here, and what the settings were.
$memory = Join-Path $env:ProgramData ("fairlead-server-" + $server.Replace(':', '-') + '.json')

# Windows has no command that adds a device without hardware; this is what "Add legacy hardware" does.
$source = @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;
using System.Text;

public static class FairleadAdapter
{
    [StructLayout(LayoutKind.Sequential)]
    struct Device { public int Size; public Guid Class; public int Instance; public IntPtr Reserved; }

    [DllImport("setupapi.dll", SetLastError = true)]
    static extern IntPtr SetupDiCreateDeviceInfoList(ref Guid kind, IntPtr window);
    [DllImport("setupapi.dll", SetLastError = true)]
    static extern bool SetupDiDestroyDeviceInfoList(IntPtr list);
    [DllImport("setupapi.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool SetupDiCreateDeviceInfo(
        IntPtr list, string name, ref Guid kind, string description, IntPtr window, int flags, ref Device device);
    [DllImport("setupapi.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool SetupDiOpenDeviceInfo(IntPtr list, string id, IntPtr window, int flags, ref Device device);
    [DllImport("setupapi.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool SetupDiSetDeviceRegistryProperty(
        IntPtr list, ref Device device, int property, byte[] value, int size);
    [DllImport("setupapi.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool SetupDiGetDeviceInstanceId(
        IntPtr list, ref Device device, StringBuilder id, int size, out int needed);
    [DllImport("setupapi.dll", SetLastError = true)]
    static extern bool SetupDiCallClassInstaller(int function, IntPtr list, ref Device device);
    [DllImport("newdev.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool UpdateDriverForPlugAndPlayDevices(
        IntPtr window, string hardware, string inf, int flags, out bool restart);

    const string Hardware = "*msloop";
    const int GenerateId = 1, HardwareId = 1, Remove = 0x05, Register = 0x19;
    static Guid net = new Guid("4d36e972-e325-11ce-bfc1-08002be10318");

    // Adds a loopback adapter; the name that Plug and Play has for it.
    public static string Add()
    {
        IntPtr list = List();
        try
        {
            Device device = New();
            Check(SetupDiCreateDeviceInfo(list, "NET", ref net, null, IntPtr.Zero, GenerateId, ref device));
            byte[] hardware = Encoding.Unicode.GetBytes(Hardware + "\0\0");
            Check(SetupDiSetDeviceRegistryProperty(list, ref device, HardwareId, hardware, hardware.Length));
            Check(SetupDiCallClassInstaller(Register, list, ref device));
            string inf = Environment.ExpandEnvironmentVariables(@"%windir%\inf\netloop.inf");
            bool restart;
            if (!UpdateDriverForPlugAndPlayDevices(IntPtr.Zero, Hardware, inf, 0, out restart))
            {
                int error = Marshal.GetLastWin32Error();
                SetupDiCallClassInstaller(Remove, list, ref device);
                throw new Win32Exception(error);
            }
            StringBuilder id = new StringBuilder(200);
            int needed;
            Check(SetupDiGetDeviceInstanceId(list, ref device, id, id.Capacity, out needed));
            return id.ToString();
        }
        finally { SetupDiDestroyDeviceInfoList(list); }
    }

    public static void Delete(string id)
    {
        IntPtr list = List();
        try
        {
            Device device = New();
            Check(SetupDiOpenDeviceInfo(list, id, IntPtr.Zero, 0, ref device));
            Check(SetupDiCallClassInstaller(Remove, list, ref device));
        }
        finally { SetupDiDestroyDeviceInfoList(list); }
    }

    static IntPtr List()
    {
        IntPtr list = SetupDiCreateDeviceInfoList(ref net, IntPtr.Zero);
        Check(list != new IntPtr(-1));
        return list;
    }

    static Device New()
    {
        Device device = new Device();
        device.Size = Marshal.SizeOf(typeof(Device));
        return device;
    }

    static void Check(bool done)
    {
        if (!done) { throw new Win32Exception(Marshal.GetLastWin32Error()); }
    }
}
'@

function Get-Adapter { Get-NetAdapter -Name $name -ErrorAction SilentlyContinue }

function Add-Adapter {
    try {
        Add-Type -TypeDefinition $source
        $id = [FairleadAdapter]::Add()
    } catch {
        throw ("No loopback adapter could be added ($_). Add one by hand: Device Manager, Action, " +
            "Add legacy hardware, Install manually, Network adapters, Microsoft, Microsoft KM-TEST Loopback Adapter. " +
            "Name it '$name' in Network Connections, and run this script again.")
    }
    $state = Read-Memory
    $state.adapter = $id
    Write-Memory $state
    $found = Wait-For { Get-NetAdapter | Where-Object { $_.PnPDeviceID -eq $id } }
    $found | Rename-NetAdapter -NewName $name
}

function Wait-For([scriptblock]$look) {
    foreach ($second in 1..30) {
        $found = & $look
        if ($found) { return $found }
        Start-Sleep -Seconds 1
    }
    throw "Not there after 30 seconds: $look"
}

function Read-Memory {
    $state = @{ adapter = ''; receive = '' }
    if (Test-Path -LiteralPath $memory) {
        $kept = Get-Content -LiteralPath $memory -Raw | ConvertFrom-Json
        $state.adapter = $kept.adapter
        $state.receive = $kept.receive
    }
    return $state
}

function Write-Memory($state) { ConvertTo-Json $state | Set-Content -LiteralPath $memory }

function Get-Address([string]$address, [string]$alias) {
    Get-NetIPAddress -IPAddress $address -ErrorAction SilentlyContinue |
        Where-Object { -not $alias -or $_.InterfaceAlias -eq $alias }
}

# The adapter by which packets come from the load balancer.
function Get-Outside { Get-Address $server | Select-Object -First 1 -ExpandProperty InterfaceAlias }

# What each adapter needs so that it takes packets for addresses of another one, and answers from them.
function Get-Setting {
    $outside = Get-Outside
    if ($outside) { @{ adapter = $outside; setting = 'WeakHostReceive' } }
    @{ adapter = $name; setting = 'WeakHostReceive' }
    @{ adapter = $name; setting = 'WeakHostSend' }
}

function Get-Value($one) {
    $found = Get-NetIPInterface -InterfaceAlias $one.adapter -AddressFamily $family -ErrorAction SilentlyContinue
    if ($found) { "$($found.($one.setting))" } else { 'nothing' }
}

function Set-Value($one, [string]$value) {
    $words = @{ InterfaceAlias = $one.adapter; AddressFamily = $family }
    $words[$one.setting] = $value
    Set-NetIPInterface @words
}

function Start-RealServer {
    if (-not (Get-Outside)) { throw "This machine does not have the address ${server}: is it the right one?" }
    if (-not (Get-Adapter)) { Add-Adapter }
    [void](Wait-For { Get-NetIPInterface -InterfaceAlias $name -AddressFamily $family -ErrorAction SilentlyContinue })
    # Nothing but the virtual addresses is wanted of it: no names in DNS, no routes, no shared folders.
    Set-DnsClient -InterfaceAlias $name -RegisterThisConnectionsAddress $false
    Disable-NetAdapterBinding -Name $name -ComponentID ms_msclient, ms_server -ErrorAction SilentlyContinue
    Set-NetIPInterface -InterfaceAlias $name -AddressFamily $family -Dhcp Disabled -RouterDiscovery Disabled `
        -DadTransmits 0 -InterfaceMetric 9999

    $state = Read-Memory
    $outside = @(Get-Setting)[0]
    if (-not $state.receive) { $state.receive = Get-Value $outside }
    Write-Memory $state
    foreach ($one in Get-Setting) { Set-Value $one 'Enabled' }

    foreach ($vip in $vips) {
        if (-not (Get-Address $vip $name)) {
            [void](New-NetIPAddress -InterfaceAlias $name -IPAddress $vip -PrefixLength $length -SkipAsSource $true)
        }
    }
    # An earlier script for this server had more.
    Get-NetIPAddress -InterfaceAlias $name -AddressFamily $family |
        Where-Object { $vips -notcontains $_.IPAddress -and $_.PrefixOrigin -eq 'Manual' } |
        Remove-NetIPAddress -Confirm:$false
}

function Stop-RealServer {
    if (-not (Test-Path -LiteralPath $memory)) { return }
    $state = Read-Memory
    foreach ($vip in $vips) { Get-Address $vip $name | Remove-NetIPAddress -Confirm:$false }
    $outside = Get-Outside
    if ($outside -and $state.receive) { Set-Value @{ adapter = $outside; setting = 'WeakHostReceive' } $state.receive }
    # One that was added by hand stays.
    if ($state.adapter) {
        Add-Type -TypeDefinition $source
        [FairleadAdapter]::Delete($state.adapter)
    }
    Remove-Item -LiteralPath $memory
}

function Say([bool]$good, [string]$ok, [string]$missing) {
    if ($good) { 'ok       ' + $ok } else { 'missing  ' + $missing }
}

function Test-Port([string]$kind, [int]$number) {
    switch ($kind) {
        'tcp' { [bool](Get-NetTCPConnection -State Listen -LocalPort $number -ErrorAction SilentlyContinue) }
        'udp' { [bool](Get-NetUDPEndpoint -LocalPort $number -ErrorAction SilentlyContinue) }
        default { $false }
    }
}

function Get-Finding {
    Say ([bool](Get-Outside)) "this machine is $server" `
        "this machine does not have the address ${server}: is it the right one?"
    foreach ($vip in $vips) { Say ([bool](Get-Address $vip $name)) "$vip is on $name" "$vip is not on $name" }
    foreach ($one in Get-Setting) {
        $now = Get-Value $one
        $what = "$($one.setting) of $($one.adapter)"
        Say ($now -eq 'Enabled') "$what is Enabled" "$what is $now, should be Enabled"
    }
    foreach ($port in $ports -split ' ' | Where-Object { $_ }) {
        $kind, $number = $port -split '/'
        Say (Test-Port $kind $number) "something listens on $kind port $number" "nothing listens on $kind port $number"
    }
}

function Test-RealServer {
    $found = @(Get-Finding)
    $found
    if ($found -match '^missing') { exit 1 }
}

switch ($What) {
    'set-up' { Start-RealServer; Test-RealServer }
    'verify' { Test-RealServer }
    'undo' { Stop-RealServer }
    default { [Console]::Error.WriteLine('usage: fairlead-server.ps1 [verify|undo]'); exit 2 }
}
